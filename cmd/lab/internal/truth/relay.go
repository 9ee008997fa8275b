package truth

import (
	"bytes"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

const tunDevice = "/dev/net/tun"

// openRelay makes a TUN device here and one in the server's network namespace, and forwards packets
// between both with a delay, so the TCP peers are the server and the client. See
// Documentation/networking/tuntap.rst of the kernel.
func openRelay(network *os.File, delay time.Duration) {
	here := openTUN()
	var there *os.File
	opened := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		opened <- must.Try(func() {
			must.Do(unix.Setns(int(network.Fd()), unix.CLONE_NEWNET))
			there = openTUN()
		})
	}()
	must.Do(<-opened)
	go forward(here, there, delay)
	go forward(there, here, delay)
}

func openTUN() *os.File {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC, 0)
	must.Be(err == nil, "cannot open %s: %v", tunDevice, err)
	request := must.Get(unix.NewIfreq(netDevice))
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	must.Be(err == nil, "cannot make a TUN device: %v", err)
	must.Do(unix.SetNonblock(fd, true))
	return os.NewFile(uintptr(fd), "tun")
}

// forward copies packets in order, each after the delay, until a device is closed.
func forward(from, to *os.File, delay time.Duration) {
	way := make(chan func(), 4096)
	go func() {
		for arrive := range way {
			arrive()
		}
	}()
	defer close(way)
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		packet, due := bytes.Clone(buffer[:n]), time.Now().Add(delay)
		way <- func() {
			time.Sleep(time.Until(due))
			to.Write(packet) // a device that is down loses the packet, as a network may
		}
	}
}
