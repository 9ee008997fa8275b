package hold_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestRefused: where the kernel refuses, one warning says what each flag comes to, and why.
func TestRefused(t *testing.T) {
	t.Parallel()
	closes := "--close-idle (LAMEDUCK_CLOSE_IDLE) closes no connection"
	for flags, says := range map[string]string{"": closes, " --goaway=9090": closes + ", --goaway (LAMEDUCK_GOAWAY) sends nothing"} {
		says += ": the seccomp profile forbids"
		s := box.Setup{Network: box.NewNetwork(t), Faults: "deny=438:1"} // pidfd_getfd(2)
		b := s.Catch(t, "--until=quiet --quiet-for=2 --grace-period=40 --close-idle"+flags, "127.0.0.1:9090")
		b.Talkers(24)
		b.Play("TERM / err holding / err " + says)
		b.Play("INT / got TERM / > exit 7 / exits 7 / ended interrupt / once " + says) // besides, the server may have been asked what it speaks
		if r := b.Report(); r.Goaway != 0 || r.ClosedIdle != 0 {
			t.Errorf("report %+v", r)
		}
	}
}

// TestGoaway: clients of HTTP/2 that call without a pause leave for another server, and no call fails.
// --close-idle alone does the same, since the server speaks nothing else. Where HTTP/1.1 is spoken instead, a
// warning says so, and nothing is sent.
func TestGoaway(t *testing.T) {
	t.Parallel()
	box.Each(t, `
		case          | flags         | speaks | clients | asks for
		a port        | --goaway=8080 | h2     | 4       | wait=50ms
		auto          | --goaway=auto | h2     | 4       | wait=50ms
		by closing    | --close-idle  | h2     | 4       | wait=50ms
		large answers | --close-idle  | h2     | 12      | wait=50ms&size=60000
		HTTP/1.1      | --goaway=8080 | http1  | 4       | wait=50ms
	`, func(t *testing.T, c box.Row) {
		clients, _ := strconv.Atoi(c["clients"])
		isHTTP2 := c["speaks"] == "h2"
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(isHTTP2)
		protocols.SetHTTP1(!isHTTP2)
		const address, elsewhere = "127.0.0.1:8080", "127.0.0.1:9090"
		n := box.NewNetwork(t)
		box.Setup{Network: n}.Start(t, box.Helper("catch", c["speaks"]+":"+elsewhere)...).Play("ready")
		b := box.Setup{Network: n}.Catch(t, "--until=quiet --quiet-for=2 --grace-period=40 "+c["flags"], c["speaks"]+":"+address)
		var failed, moved atomic.Int32
		for range clients {
			dials := 0
			connect := func(ctx context.Context, network, _ string) (net.Conn, error) {
				if dials++; dials == 1 {
					return n.Connect(address)
				}
				moved.Add(1)
				return n.Connect(elsewhere)
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
			call()
			defer box.Repeat(time.Millisecond, call)() // without a pause: a call lasts longer
		}
		b.Play("TERM / err holding")
		want, asked, ports := "quiet", clients, []int{8080}
		if !isHTTP2 {
			want, asked, ports = "interrupt", 0, []int{}
			b.Play("err does not speak HTTP/2")
			b.Signal(sig.INT)
		}
		b.Play("got TERM")
		if n := failed.Load(); n > 0 {
			t.Errorf("%d calls failed", n)
		}
		b.Exit()
		if r := b.Report(); r.Ended != want || r.Goaway != asked || r.CameBack != 0 || isHTTP2 && int(moved.Load()) != asked || !slices.Equal(r.GoawayPorts, ports) {
			t.Errorf("report %+v, want %s and GOAWAY on %d connections to %v; %d have moved", r, want, asked, ports, moved.Load())
		}
	})
}
