module github.com/lameduck-init/lameduck

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	golang.org/x/sys v0.49.0
)

require github.com/creack/pty v1.1.24
