package main

import (
	"regexp"

	"github.com/lameduck-init/lameduck/shim"
)

// What is known of images by their names, as of November 2026. An image of another name may have
// any shell, stop signal and entrypoint.
var (
	// dashRE matches images of Docker's library whose sh is dash, which never executes a command
	// in its own place, and whose entrypoint, if there is one, executes the command.
	dashRE  = library(`buildpack-deps|debian|gcc|golang|haproxy|httpd|mariadb|mongo|nginx|node|perl|php|postgres|python|redis|ruby|rust|ubuntu`)
	smallRE = regexp.MustCompile(`alpine|busybox|windows|nanoserver|\$`) // have another sh, or may

	// libraryRE matches images of Docker's library, none of which has a lameduck.
	libraryRE = library(`caddy|haproxy|httpd|memcached|mongo|mysql|mariadb|nginx|node|php|postgres|python|rabbitmq|redis|ruby|` +
		`tomcat|traefik|varnish`)

	// systemRE matches images in which a program has its distribution's configuration.
	systemRE = library(`alpine|amazonlinux|archlinux|busybox|debian|fedora|rockylinux|ubuntu`)
)

// library returns a pattern for images of Docker's library by their names.
func library(names string) *regexp.Regexp {
	return regexp.MustCompile(`^(docker\.io/)?(library/)?(` + names + `)([:@]|$)`)
}

// images have the stop signal and the program of images, the first that matches. nginx before
// 1.18, but for 1.11, is stopped by TERM.
var images = []struct {
	name            *regexp.Regexp
	signal, program string
}{
	{regexp.MustCompile(`\$`), "", ""},
	{library(`nginx:1\.([0-9]|10|1[2-7])([.@-].*)?`), "TERM", "nginx"},
	{library(`nginx`), "QUIT", "nginx"},
	{library(`php:[^@]*fpm.*`), "QUIT", "php-fpm"},
	{library(`php:[^@]*apache.*`), "WINCH", "httpd"},
	{library(`httpd`), "WINCH", "httpd"},
	{library(`haproxy`), "USR1", "haproxy"},
	{library(`buildpack-deps|gcc|golang|node|perl|php|python|ruby|rust`), "TERM", ""},
	{systemRE, "TERM", ""},
}

// imageStop returns the stop signal of an image, and the program that it runs by default, as far
// as they are known.
func imageStop(image string) (signal, program string) {
	for _, i := range images {
		if i.name.MatchString(image) {
			return i.signal, i.program
		}
	}
	return "", ""
}

// finishing has the servers that drop requests at TERM, and the signals at which they finish them.
var finishing = map[string]string{"nginx": "QUIT", "httpd": "WINCH", "haproxy": "USR1", "php-fpm": "QUIT"}

// controlRE matches calls of a server that control another, or only test something.
var controlRE = regexp.MustCompile(`^(\S*/)?(nginx|openresty|php-fpm\S*|httpd|apache2|haproxy) (.* )?-(s ?\w+|t|T|v|V|k ?\w+|c$)`)

// serverIn returns the preset of the server that a command runs, or nil.
func serverIn(c *command) *shim.Preset {
	if controlRE.MatchString(c.String()) {
		return nil
	}
	outline, err := shim.Review(shim.Config{Command: texts(c.words()), Preset: shim.AutoPreset})
	if err != nil {
		return nil
	}
	return outline.Preset
}

// runners run a script or a server behind a shell that is dash where sh is.
var runners = []struct {
	call          *regexp.Regexp
	fault, remedy string
}{
	{regexp.MustCompile(`^(\S*/)?npm (.* )?(start|run)\b`), "npm runs its script", "the script's own command, such as node server.js"},
	{regexp.MustCompile(`^(\S*/)?pnpm (.* )?(start|run)\b`), "pnpm before 12 runs its script", "the script's own command, such as node server.js"},
	{regexp.MustCompile(`^(\S*/)?yarn (.* )?(start|run|serve)\b`), "yarn 1 runs its script", "the script's own command, such as node server.js"},
	{regexp.MustCompile(`^(\S*/)?apache(2ctl|ctl) .*-D ?FOREGROUND`), "apache2ctl runs Apache", `sh -c ". /etc/apache2/envvars && exec apache2 -DFOREGROUND"`},
}

// newRunnerRE matches what package.json or .yarnrc.yml has for runners that pass signals on.
var newRunnerRE = regexp.MustCompile(`yarn@[2-9]|pnpm@1[2-9]|yarnPath|nodeLinker|": *"exec `)

// cuts are commands of hooks that drop requests, and what to write instead: calls, behind which is
// the name of the server that is the first process. Of those that apply the first counts.
var cuts = []struct {
	call              string
	first, last, term bool // applies only to the first command, the last, or where the stop signal is TERM
	fault, remedy     string
}{
	{`(nginx|openresty) (.* )?-s ?stop\b`, false, false, false, "drops requests in flight", "sleep 15; nginx -s quit; sleep 10"},
	{`(apachectl|apache2ctl|httpd|apache2) (-k )?stop\b`, false, false, false, "drops requests in flight",
		"sleep 15; apachectl -k graceful-stop; sleep 10"},
	{`(kill|killall|pkill) (.* )?-(s )?(SIG)?(9|KILL)\b`, false, false, false, "leaves no time to finish requests", "sleep 15"},
	{`kill (-(s )?(SIG)?(15|TERM) )?1 (nginx|httpd|haproxy|php-fpm)$`, false, false, false, "drops requests in flight",
		"sleep 15 in its place"},
	{closes, true, true, false, "closes the port while clients are still sent to it",
		"sleep 15 in front of it, and sleep 10 behind it, since the stop signal follows at once"},
	{closes, true, false, false, "closes the port while clients are still sent to it", "sleep 15 in front of it"},
	{closes, false, true, true, "returns at once, and TERM follows, which drops requests in flight", "sleep 10 behind it"},
}

// closes matches commands that have a server finish its requests, and close its port before.
const closes = `((nginx|openresty) (.* )?-s ?quit|(apachectl|apache2ctl|httpd|apache2) .*graceful-stop|` +
	`kill -(s )?(SIG)?(((3|QUIT) 1 (nginx|php-fpm))|(28|WINCH) 1 httpd|(10|USR1) 1 haproxy))\b`

// lack are the programs that images have not.
type lack struct{ image, programs *regexp.Regexp }

// lacking has images without some programs, the first that matches, as far as they are known: images
// without a shell, of which those for debugging have one, and those that were looked at.
var lacking = []lack{
	{regexp.MustCompile(`:.*(debug|dev|alpine)`), regexp.MustCompile(`$^`)},
	{regexp.MustCompile(`distroless|chainguard/static|(^|/)(pause|hello-world|http-echo|coredns|cloudflared):`),
		regexp.MustCompile(`^((ba|da|a)?sh|sleep|kill|curl|wget)$`)},
	{regexp.MustCompile(`^(docker\.io/)?envoyproxy/envoy:`), regexp.MustCompile(`^(curl|wget|netstat)$`)},
	{library(`debian|(node|perl|python|ruby):[^@]*slim.*`), regexp.MustCompile(`^(curl|wget|netstat|ss|ps|pgrep|pkill|killall|nc)$`)},
	{library(`ubuntu`), regexp.MustCompile(`^(curl|wget|netstat|ss|killall|nc)$`)},
	{library(`nginx`), regexp.MustCompile(`^(netstat|ss|ps|pgrep|pkill|killall|nc)$`)},
}

var (
	// looksRE matches scripts that look for a program, or bring one.
	looksRE = regexp.MustCompile(`command -v|which |type |-x |apt|apk `)
	// prefixedRE matches signal names that dash does not take.
	prefixedRE = regexp.MustCompile(`^kill .*-(s )?SIG`)
	// traceRE matches the capabilities with which --close-idle may do what it does.
	traceRE = regexp.MustCompile(`ALL|SYS_PTRACE`)

	// servantRE matches images of containers that others need to serve, such as the proxy of a database.
	servantRE = regexp.MustCompile(`(^|/)([^/]*(sql-?proxy|auth-proxy|daprd|pgbouncer)(:[^/]*)?|php:[^/]*fpm[^/]*)$`)
	// waitsRE matches flags and variables by which they wait before they stop.
	waitsRE = regexp.MustCompile(`(?i)sigterm|term.?timeout|shutdown|drain`)
)
