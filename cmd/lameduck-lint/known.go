package main

import "regexp"

// What is known of images by their names, as of November 2026. An image of another name may have
// any shell, stop signal and entrypoint.
var (
	// dashRE matches images of Docker's library whose sh is dash, which never executes a command
	// in its own place, and whose entrypoint, if there is one, executes the command.
	dashRE  = regexp.MustCompile(`^(docker\.io/)?(library/)?(buildpack-deps|debian|gcc|golang|haproxy|httpd|mariadb|mongo|nginx|node|perl|php|postgres|python|redis|ruby|rust|ubuntu)([:@]|$)`)
	smallRE = regexp.MustCompile(`alpine|busybox|windows|nanoserver`) // have another sh
	npmRE   = regexp.MustCompile(`^(\S*/)?npm (start|run)\b`)

	// noShellRE matches images without a shell; those of distroless for debugging have one.
	noShellRE = regexp.MustCompile(`distroless|chainguard/static|(^|/)(pause|hello-world|http-echo|coredns|cloudflared):`)
	debugRE   = regexp.MustCompile(`:.*(debug|dev)`)
	needsRE   = regexp.MustCompile(`^(.*/)?((ba|da|a)?sh|sleep|kill|curl|wget)$`)

	// traceRE matches the capabilities with which --close-idle may do what it does.
	traceRE = regexp.MustCompile(`ALL|SYS_PTRACE`)

	// termRE matches images whose stop signal is TERM: distributions, and nginx before 1.18 but for
	// 1.11.
	termRE = regexp.MustCompile(`^(docker\.io/)?(library/)?(alpine|amazonlinux|archlinux|busybox|debian|fedora|rockylinux|ubuntu|` +
		`nginx:1\.([0-9]|10|1[2-7]))([:@.-]|$)`)
)

// finishing has the servers that drop requests at TERM, and the signals at which they finish them.
var finishing = map[string]string{"nginx": "QUIT", "httpd": "WINCH", "haproxy": "USR1", "php-fpm": "QUIT"}

// cuts are commands of hooks that drop requests, and what to write instead.
var cuts = []struct {
	pattern       *regexp.Regexp
	first         bool // only before any other command, which may wait
	fault, remedy string
}{
	{regexp.MustCompile(`^(\S*/)?(nginx|openresty) (.* )?-s ?stop\b`), false, "drops requests in flight", "sleep 15; nginx -s quit"},
	{regexp.MustCompile(`^(\S*/)?(apachectl|apache2ctl|httpd|apache2) (-k )?stop\b`), false,
		"drops requests in flight", "sleep 15; apachectl -k graceful-stop"},
	{regexp.MustCompile(`^(\S*/)?(kill|killall|pkill) (.* )?-(9|KILL|SIGKILL|s (9|KILL|SIGKILL))\b`), false,
		"leaves no time to finish requests", "sleep 15"},
	{regexp.MustCompile(`^(\S*/)?((nginx|openresty) (.* )?-s ?quit|(apachectl|apache2ctl|httpd|apache2) .*graceful-stop)\b`), true,
		"closes the port while clients are still sent to it", "sleep 15 in front of it"},
}
