package main

import (
	"regexp"

	"github.com/lameduck-init/lameduck/shim"
)

// pattern is a regular expression.
type pattern string

// compiled has the patterns that were used.
var compiled = map[pattern]*regexp.Regexp{}

func (p pattern) matches(text string) bool {
	if compiled[p] == nil {
		compiled[p] = regexp.MustCompile(string(p))
	}
	return compiled[p].MatchString(text)
}

// library returns a pattern for images of Docker's library by their names.
func library(names pattern) pattern { return `^(docker\.io/)?(library/)?(` + names + `)([:@]|$)` }

// What is known of images by their names, as of November 2026. An image of another name may have
// any shell, stop signal, entrypoint and programs.
const (
	// dashImages have dash as sh, which never executes a command in its own place, and an entrypoint, if
	// there is one, that executes the command.
	dashImages pattern = `buildpack-deps|debian|gcc|golang|haproxy|httpd|mariadb|mongo|nginx|node|perl|php|postgres|` +
		`python|redis|ruby|rust|ubuntu`
	otherSh pattern = `alpine|busybox|windows|nanoserver|\$` // in any name: another sh, or perhaps
	// serverImages have no lameduck.
	serverImages pattern = `caddy|haproxy|httpd|memcached|mongo|mysql|mariadb|nginx|node|php|postgres|python|` +
		`rabbitmq|redis|ruby|tomcat|traefik|varnish`
)

// images have what is known, the first that matches. nginx before 1.18, but for 1.11, is stopped by
// TERM. Images without a shell have one in their variants for debugging.
var images = []imageFacts{
	{`\$|:.*(debug|dev)`, "", "", ""},
	{`distroless|chainguard/static|(^|/)(pause|hello-world|http-echo|coredns|cloudflared):`, "", "",
		`(ba|da|a)?sh|sleep|kill|curl|wget`},
	{`^(docker\.io/)?envoyproxy/envoy:`, "", "", `curl|wget|netstat`},
	{library(`nginx:1\.([0-9]|10|1[2-7])([.@-].*)?`), "TERM", "nginx", `netstat|ss|ps|pgrep|pkill|killall|nc`},
	{library(`nginx`), "QUIT", "nginx", `netstat|ss|ps|pgrep|pkill|killall|nc`},
	{library(`php:[^@]*fpm.*`), "QUIT", "php-fpm", ""},
	{library(`php:[^@]*apache.*`), "WINCH", "httpd", ""},
	{library(`httpd`), "WINCH", "httpd", ""},
	{library(`haproxy`), "USR1", "haproxy", ""},
	{library(`debian|(node|perl|python|ruby):[^@]*slim.*`), "TERM", "",
		`curl|wget|netstat|ss|ps|pgrep|pkill|killall|nc`},
	{library(`ubuntu`), "TERM", "", `curl|wget|netstat|ss|killall|nc`},
	{library(`alpine|amazonlinux|archlinux|buildpack-deps|busybox|fedora|gcc|golang|node|perl|php|python|rockylinux|` +
		`ruby|rust`), "TERM", "", ""},
}

// imageFacts are the stop signal of an image, the program that it runs by default, and programs that
// it lacks; "": unknown.
type imageFacts struct {
	name            pattern
	signal, program string
	lacks           pattern
}

// factsOf returns what is known of an image.
func factsOf(image string) imageFacts {
	for _, i := range images {
		if i.name.matches(image) {
			return i
		}
	}
	return imageFacts{}
}

// dropsAtTERM reports whether a server drops requests at TERM, and finishes them at the signal of its preset.
func dropsAtTERM(server *shim.Preset) bool {
	return server != nil && pattern(`^(nginx|httpd|haproxy|php-fpm)$`).matches(server.Name)
}

// controls matches calls of a server that control another, or only test something.
const controls pattern = `^(\S*/)?((nginx|openresty|php-fpm\S*|httpd|apache2) (.* )?-(s ?\w+|t|T|v|V|k ?\w+)|` +
	`haproxy (.* )?-(c|v|vv))\b`

// runners run a script or a server by sh, which may be dash, and pass no stop signal on.
var runners = []struct {
	call          pattern
	fault, remedy string
}{
	{`^(\S*/)?npm (.* )?(start|run)\b`, "npm runs its script", "the script's own command, such as node server.js"},
	{`^(\S*/)?pnpm (.* )?(start|run)\b`, "pnpm before 12 runs its script",
		"the script's own command, such as node server.js"},
	{`^(\S*/)?yarn (.* )?(start|run|serve)\b`, "yarn 1 runs its script",
		"the script's own command, such as node server.js"},
	{`^(\S*/)?apache(2ctl|ctl) .*-D ?FOREGROUND`, "apache2ctl runs Apache",
		`sh -c ". /etc/apache2/envvars && exec apache2 -DFOREGROUND"`},
}

// passesOn matches package.json or .yarnrc.yml where a script or a newer runner passes signals on.
const passesOn pattern = `yarn@[2-9]|pnpm@1[2-9]|yarnPath|nodeLinker|": *"exec `

// cuts are commands of hooks that drop requests, and what to write instead: calls, behind which is
// the name of the server that is the first process. Of those that apply the first counts.
var cuts = []struct {
	call          pattern
	when          pattern // whether it is the first command, whether it is the last, and the stop signal, or 0
	fault, remedy string
}{
	{`(nginx|openresty) (.* )?-s ?stop\b`, ``, "drops requests in flight",
		"sleep 15; nginx -s quit; sleep 10"},
	{`(apachectl|apache2ctl|httpd|apache2) (-k )?stop\b`, ``, "drops requests in flight",
		"sleep 15; apachectl -k graceful-stop; sleep 10"},
	{`(kill|killall|pkill) (.* )?-(s )?(SIG)?(9|KILL)\b`, ``, "leaves no time to finish requests",
		"sleep 15"},
	{`httpGet \S*/actuator/shutdown\b`, ``, "is refused, since that takes POST alone, and nothing waits",
		"sleep 15 in its place"},
	{`kill (-(s )?(SIG)?(15|TERM) )?1 (nginx|httpd|haproxy|php-fpm)$`, ``, "drops requests in flight",
		"sleep 15 in its place"},
	{closes, `^true true (TERM|0)$`, "closes the port while clients are still sent to it",
		"sleep 15 in front of it, and sleep 10 behind it, since the stop signal follows at once"},
	{closes, `^true`, "closes the port while clients are still sent to it", "sleep 15 in front of it"},
	{closes, `^false true TERM$`, "returns at once, and TERM follows, which drops requests in flight",
		"sleep 10 behind it"},
}

const (
	// closes matches commands that have a server finish its requests, and close its port before.
	closes pattern = `((nginx|openresty) (.* )?-s ?quit|(apachectl|apache2ctl|httpd|apache2) .*graceful-stop|` +
		`kill -(s )?(SIG)?(((3|QUIT) 1 (nginx|php-fpm))|(28|WINCH) 1 httpd|(10|USR1) 1 haproxy))\b`
	// looks matches scripts that look for a program, or bring one.
	looks pattern = `command -v|which |type |-x |apt|apk `
	// prefixed matches signal names that dash does not take.
	prefixed pattern = `^kill .*-(s )?SIG`

	// servants are images of containers that others need to serve, such as the proxy of a database.
	servants pattern = `(^|/)([^/]*(sql-?proxy|gce-proxy|auth-proxy|daprd|pgbouncer)([:@][^/]*)?|php:[^/]*fpm[^/]*)$`
	// injected is the image of the container that Dapr injects, unless daprWaits has it wait.
	injected  = "daprd"
	daprWaits = "dapr.io/block-shutdown-duration"
	// drains are images of containers that wait by themselves, or that clients do not miss.
	drains pattern = `(^|/)(proxyv2|ztunnel|[^/]*(exporter|state-metrics))([:@]|$)|^auto$|` + servants
	// replaced are the kinds whose pods are replaced while clients are sent to them.
	replaced pattern = `^(Deployment|DaemonSet|StatefulSet|Rollout)$`
	// aside matches the names of ports that clients do not use.
	aside pattern = `(?i)metric|monitor|prom|stat|health|probe|debug|pprof|exporter`
	// grpc matches the names of ports of gRPC, but for grpc-web, and h2c protocols that Services name.
	grpc pattern = `^grpc(-([^w]|w[^e]).*)?$`
	h2c  pattern = `^(kubernetes\.io/h2c|grpc)$`
	// waits matches flags and variables by which they wait before they stop.
	waits pattern = `(?i)sigterm|term.?timeout|shutdown|drain`
	// mayRunOurs matches a script or a supervisor, and variables of lameduck, which it probably runs.
	mayRunOurs pattern = `^\[\{\S*(sh|supervisord|s6-svscan|runsvdir|/init) .*LAMEDUCK_`
)
