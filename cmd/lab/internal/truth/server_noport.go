package truth

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// serverless returns a server without a TCP port in the network namespace.
func serverless(kind string) *server {
	return &server{noPort: true, command: func(at place) ([]string, error) {
		return role("noport", kind, at.dir+"/ready")(at)
	}}
}

// serveNoPort opens a socket and waits for a signal. The file means: the socket is open.
func serveNoPort(kind, ready string) error {
	if err := openNoPort(kind); err != nil {
		return err
	}
	if err := os.WriteFile(ready, nil, 0o644); err != nil {
		return err
	}
	time.Sleep(forever)
	return nil
}

func openNoPort(kind string) (err error) {
	switch kind {
	case "none":
	case "abstract":
		var l net.Listener
		l, err = net.Listen("unix", "@truth")
		keepOpen = append(keepOpen, l)
	case "udp":
		var c net.PacketConn
		c, err = net.ListenPacket("udp", ":0")
		keepOpen = append(keepOpen, c)
	case "icmp":
		_, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
	case "elsewhere":
		runtime.LockOSThread()
		err = unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			var l net.Listener
			l, err = net.Listen("tcp", fmt.Sprintf(":%d", port))
			keepOpen = append(keepOpen, l)
		}
	}
	return err
}

// keepOpen keeps sockets from the garbage collector, and so open.
var keepOpen []any
