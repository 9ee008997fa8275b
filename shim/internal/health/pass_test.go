package health

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"

	"github.com/lameduck-init/lameduck/shim/internal/check"
)

// TestHalfClose tests half-closed connections: the other half still carries bytes.
func TestHalfClose(t *testing.T) {
	for _, clientFirst := range []bool{true, false} {
		_, first, second := relayed(t)
		if !clientFirst {
			first, second = second, first
		}
		transfer(t, first, second, "the last word")
		must(t, first.CloseWrite())
		if rest, err := io.ReadAll(second); err != nil || len(rest) > 0 {
			t.Fatalf("client first: %v: %q, %v", clientFirst, rest, err)
		}
		transfer(t, second, first, "one more")
		must(t, second.CloseWrite())
		if rest, err := io.ReadAll(first); err != nil || len(rest) > 0 {
			t.Fatalf("client first: %v: %q, %v", clientFirst, rest, err)
		}
	}
}

// TestReset tests resets: the bytes sent before a reset arrive, then the reset.
func TestReset(t *testing.T) {
	for _, clientFirst := range []bool{true, false} {
		_, first, second := relayed(t)
		if !clientFirst {
			first, second = second, first
		}
		transfer(t, first, second, "hear")
		must(t, first.SetLinger(0))
		first.Close()
		if _, err := second.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("client first: %v: Read = %v, want a reset", clientFirst, err)
		}
	}
}

// TestBackpressure tests two writers that send more bytes than the buffers hold, with
// readers that begin when both writers are blocked: all bytes arrive.
func TestBackpressure(t *testing.T) {
	const size, piece = 16 << 20, 64 << 10 // more than socket buffers take
	_, client, server := relayed(t)
	data := make([]byte, size)
	rand.Read(data)
	var written atomic.Int64
	var all sync.WaitGroup
	for _, end := range []*net.TCPConn{client, server} {
		all.Go(func() {
			for i := 0; i < size; i += piece {
				if _, err := end.Write(data[i : i+piece]); err != nil {
					t.Error(err)
					return
				}
				written.Add(piece)
			}
			end.CloseWrite()
		})
	}
	last, same := int64(0), 0
	testutil.Eventually(t, "both writers are blocked", func() bool {
		if now := written.Load(); now != last {
			last, same = now, 0
		}
		same++
		return same > 100
	})
	if last == 2*size {
		t.Error("no writer blocked: the test shows nothing")
	}
	for _, end := range []*net.TCPConn{client, server} {
		all.Go(func() {
			got, err := io.ReadAll(iotest.HalfReader(end))
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("received %d bytes, equal: %v, error %v; want %d bytes", len(got), bytes.Equal(got, data), err, size)
			}
		})
	}
	all.Wait()
}

// TestNoApp tests checks while the app refuses connections, and after the app listens.
func TestNoApp(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	socket := os.NewFile(uintptr(fd), "app")
	defer socket.Close()
	must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})) // the port stays its own
	l := serve(t, loopback(localAddress(fd)))
	if status, _, err := askHealth(newClient(), l.url()); err == nil {
		t.Errorf("status %d without an app, want an error", status)
	}
	must(t, unix.Listen(fd, 1))
	again, err := net.FileListener(socket)
	must(t, err)
	s := &http.Server{Handler: http.NotFoundHandler()}
	go s.Serve(again)
	defer s.Close()
	wantCheck(t, newClient(), l.url(), 404, "404 page not found\n")
}

// TestEitherLoopback tests the target :PORT with an app on either loopback address.
func TestEitherLoopback(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(addr, func(t *testing.T) {
			at := web(t, addr)
			l := serve(t, loopback(netip.AddrPortFrom(netip.Addr{}, at.Port())))
			wantCheck(t, newClient(), l.url(), 200, "fine /health")
		})
	}
}

// TestListen tests listening on all addresses, on IPv4 alone, on IPv6.
func TestListen(t *testing.T) {
	six := hasIPv6(t)
	for _, cells := range script.Rows(`
		# listen | 127.0.0.1 | [::1]
		          | yes | yes
		::        | yes | yes
		0.0.0.0   | yes |
		127.0.0.1 | yes |
		::1       |     | yes
	`) {
		listen := cells[0]
		if !six && strings.Contains(listen, ":") {
			continue
		}
		var addr netip.Addr
		if listen != "" {
			addr = netip.MustParseAddr(listen)
		}
		l := serve(t, check.Spec{Listen: netip.AddrPortFrom(addr, 0)})
		for i, host := range []string{"127.0.0.1", "[::1]"} {
			want := cells[i+1] == "yes" && (i == 0 || six)
			status, _, err := askHealth(newClient(), fmt.Sprintf("http://%s:%d", host, l.port))
			if got := status == 200; got != want {
				t.Errorf("listening on %q, check of %s = %d, %v; want an answer: %v", listen, host, status, err, want)
			}
		}
	}
}

// hasIPv6 reports whether this machine has IPv6.
func hasIPv6(t *testing.T) bool {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Log("no IPv6: ", err)
		return false
	}
	l.Close()
	return true
}
