module github.com/lameduck-init/lameduck/cmd/lab

go 1.26.0

require (
	github.com/coder/websocket v1.8.15
	github.com/vishvananda/netlink v1.3.1
	golang.org/x/sys v0.49.0
)

require github.com/vishvananda/netns v0.0.5 // indirect
