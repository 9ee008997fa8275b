package hold_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestRefused: where the kernel refuses, one warning says what each flag comes to, and why.
func TestRefused(t *testing.T) {
	t.Parallel()
	port := box.FreePort()
	closes := "--close-idle (LAMEDUCK_CLOSE_IDLE) closes no connection"
	for flags, says := range map[string]string{
		"": closes, fmt.Sprint(" --goaway=", port): closes + ", --goaway (LAMEDUCK_GOAWAY) sends nothing",
	} {
		says += ": the seccomp profile forbids"
		s := box.Setup{Network: box.NewNetwork(t), Faults: "deny=438:1"} // pidfd_getfd(2)
		b := s.Catch(t, "--until=quiet --quiet-for=2 --grace-period=40 --close-idle"+flags, fmt.Sprintf("127.0.0.1:%d", port))
		b.Talkers(24)
		b.Trigger()
		b.Err.Wait(says)
		b.WantHolding("a connection is in use")
		b.Signal(sig.INT)
		b.Out.Wait("got TERM")
		b.Exit()
		if r := b.Report(); r.Goaway != 0 || r.ClosedIdle != 0 {
			t.Errorf("report %+v", r)
		}
		b.WantWarning(says)
	}
}

// TestGoaway: clients of HTTP/2 that call without a pause leave for another server, and no call fails.
// Where HTTP/1.1 is spoken instead, a warning says so, and one request fails at most: a client that has
// just read an answer leaves, and proves nothing.
func TestGoaway(t *testing.T) {
	t.Parallel()
	const clients, warning = 4, "seems not to be HTTP/2"
	for _, isHTTP2 := range []bool{true, false} {
		t.Run(fmt.Sprint("HTTP/2 ", isHTTP2), func(t *testing.T) {
			t.Parallel()
			elsewhere := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
			protocols := new(http.Protocols)
			protocols.SetUnencryptedHTTP2(isHTTP2)
			protocols.SetHTTP1(!isHTTP2)
			elsewhere.Config.Protocols = protocols
			elsewhere.Start()
			defer elsewhere.Close()

			port := box.FreePort()
			address := fmt.Sprintf("127.0.0.1:%d", port)
			n := box.NewNetwork(t)
			flags := fmt.Sprintf("--until=quiet --quiet-for=2 --grace-period=40 --goaway=%d", port)
			b := box.Setup{Network: n}.Boot(t, flags, box.Helper("web", address)...)
			b.Ready()
			var failed, moved atomic.Int32
			var all, begun sync.WaitGroup
			ctx, end := context.WithCancel(context.Background())
			begun.Add(clients)
			for range clients {
				dials := 0
				connect := func(ctx context.Context, network, _ string) (net.Conn, error) {
					if dials++; dials == 1 {
						return n.Connect(address)
					}
					moved.Add(1)
					return new(net.Dialer).DialContext(ctx, network, elsewhere.Listener.Addr().String())
				}
				client := http.Client{Transport: &http.Transport{DialContext: connect, Protocols: protocols}}
				call := func() {
					answer, err := client.Post("http://server/?wait=50ms", "text/plain", nil)
					if err == nil {
						_, err = io.Copy(io.Discard, answer.Body)
						answer.Body.Close()
					}
					if err != nil {
						failed.Add(1)
					}
				}
				all.Go(func() {
					call()
					begun.Done()
					for ctx.Err() == nil {
						call()
					}
				})
			}
			begun.Wait()
			b.Trigger()
			want, least, most, mayFail := "quiet", clients, clients, int32(0)
			if isHTTP2 {
				b.Out.Wait("got TERM")
			} else {
				want, least, most, mayFail = "interrupt", 1, 2, 1
				b.Err.Wait(warning)
			}
			if n := failed.Load(); n > mayFail {
				t.Errorf("%d calls failed", n)
			}
			if !isHTTP2 {
				b.Signal(sig.INT)
				b.Out.Wait("got TERM")
			}
			b.Exit()
			end()
			if r := b.Report(); r.Ended != want || r.Goaway < least || r.Goaway > most || r.CameBack != 0 || moved.Load() < int32(least) {
				t.Errorf("report %+v, want %s and GOAWAY on %d to %d connections; %d have moved", r, want, least, most, moved.Load())
			}
			all.Wait()
		})
	}
}
