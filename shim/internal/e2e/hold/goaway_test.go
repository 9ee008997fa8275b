package hold_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
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
		if n := strings.Count(strings.Join(b.Err.Texts(), "\n"), says); n != 1 { // besides, the server may have been asked what it speaks
			t.Errorf("%d warnings of %q", n, says)
		}
	}
}

// TestGoaway: clients of HTTP/2 that call without a pause leave for another server, and no call fails.
// --close-idle alone does the same, since the server speaks nothing else. Where HTTP/1.1 is spoken instead, a
// warning says so, and nothing is sent.
func TestGoaway(t *testing.T) {
	t.Parallel()
	for _, c := range box.Table(`
		flags         | speaks | clients | asks for
		--goaway=PORT | HTTP/2 | 4       | wait=50ms
		--goaway=auto | HTTP/2 | 4       | wait=50ms
		--close-idle  | HTTP/2 | 4       | wait=50ms
		--close-idle  | HTTP/2 | 12      | wait=50ms&size=60000
		--goaway=PORT | HTTP/1 | 4       | wait=50ms
	`) {
		t.Run(c["flags"]+" "+c["speaks"]+" "+c["asks for"], func(t *testing.T) {
			clients, _ := strconv.Atoi(c["clients"])
			t.Parallel()
			isHTTP2 := c["speaks"] == "HTTP/2"
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
			flags := strings.ReplaceAll("--until=quiet --quiet-for=2 --grace-period=40 "+c["flags"], "PORT", fmt.Sprint(port))
			b := box.Setup{Network: n}.Boot(t, flags, box.Helper("web", address, c["speaks"])...)
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
					answer, err := client.Post("http://server/?"+c["asks for"], "text/plain", nil)
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
			want, asked, ports := "quiet", clients, []int{port}
			if !isHTTP2 {
				want, asked, ports = "interrupt", 0, []int{}
				b.Err.Wait("does not speak HTTP/2")
				b.WantHolding("a connection is in use")
				b.Signal(sig.INT)
			}
			b.Out.Wait("got TERM")
			if n := failed.Load(); n > 0 {
				t.Errorf("%d calls failed", n)
			}
			b.Exit()
			end()
			if r := b.Report(); r.Ended != want || r.Goaway != asked || r.CameBack != 0 || isHTTP2 && int(moved.Load()) != asked || !slices.Equal(r.GoawayPorts, ports) {
				t.Errorf("report %+v, want %s and GOAWAY on %d connections to %v; %d have moved", r, want, asked, ports, moved.Load())
			}
			all.Wait()
		})
	}
}
