package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// lineConn is a connection to a server with a line-based protocol.
type lineConn struct {
	conn net.Conn
	in   *bufio.Reader
}

func (s *site) dial() lineConn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testutil.Patience))
	return lineConn{conn, bufio.NewReader(conn)}
}

// request sends a line and skips to the reply with the prefix.
func (w lineConn) request(line, prefix string) error {
	fmt.Fprint(w.conn, line+"\r\n")
	_, err := w.skipTo(prefix)
	return err
}

// skipTo reads until a line with the prefix, and returns the line.
func (w lineConn) skipTo(prefix string) (line string, err error) {
	for err == nil {
		line, err = w.in.ReadString('\n')
		if strings.HasPrefix(line, prefix) {
			break
		}
	}
	return line, err
}

// noError fails the test if err is not nil.
func noError(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// boot boots the site's server and waits for its port. With a preset, boot checks that
// lameduck recognizes the server.
func (s *site) boot(p *preset.Preset, command string, flags ...string) *box {
	s.t.Helper()
	b := boot(s.t, []string{"HOME=" + s.dir}, append(append(flags, "--"), s.command(command)...)...)
	awaitPort(s.t, s.addr(), true)
	if p != nil {
		wantRecognized(s.t, b, p)
	}
	return b
}

// TestPresetRedis: with a hold a client's blocking command gets its reply, and the data are
// saved. Without a hold the command is cut.
func TestPresetRedis(t *testing.T) {
	t.Parallel()
	needs(t, "redis-server")
	s := newSite(t, 18530)
	p := presetNamed(t, "redis")
	const server = "redis-server --bind 127.0.0.1 --port PORT --dir DIR --save 900~1"
	blocked := func(s *site) func() error {
		return func() error {
			go func() {
				awaitBlockedClient(t, s)
				s.backend.arrived <- true
			}()
			return s.dial().request("BLPOP queue 0", "*2")
		}
	}
	b := s.boot(p, server, append(presetFlags(p), "--until=quiet", "--delay=0", "--quiet-for=0.3", "--grace-period=30")...)
	f := s.startRequest(blocked(s))
	b.signal(sig.TERM)
	b.err.wait(t, "until quiet")
	f.wantInFlight(cutWindow)
	noError(t, "a push during the hold", s.dial().request("RPUSH queue a", ":"))
	noError(t, "a value to save", s.dial().request("SET a 1", "+OK"))
	f.wantFinished()
	b.wantExit(0)
	if _, err := os.Stat(s.dir + "/dump.rdb"); err != nil {
		t.Error("the data were not saved: ", err)
	}

	again := s.withNewBackend()
	b = again.boot(p, server, append(presetFlags(p), "--delay=0.1")...)
	f = again.startRequest(blocked(again))
	b.signal(sig.TERM)
	f.wantCut()
	b.wantExit(0)
}

// awaitBlockedClient waits until a client of Redis is blocked.
func awaitBlockedClient(t *testing.T, s *site) {
	conn := s.dial()
	testutil.Eventually(t, "a client of Redis is blocked", func() bool {
		fmt.Fprint(conn.conn, "INFO clients\r\n")
		line, err := conn.skipTo("blocked_clients:")
		return err == nil && strings.TrimSpace(line) == "blocked_clients:1"
	})
}

// TestPresetMemcached: with a memory file the cache survives a stop by the preset, and does
// not survive TERM.
func TestPresetMemcached(t *testing.T) {
	t.Parallel()
	needs(t, "memcached")
	p := presetNamed(t, "memcached")
	for i, c := range []struct{ flags, answer string }{{strings.Join(presetFlags(p), " "), "VALUE"}, {"--rewrite=TERM:TERM", "END"}} {
		t.Run(c.answer, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 18540+i)
			const server = "memcached -u root -l 127.0.0.1 -p PORT -m 64 -e DIR/memory"
			b := s.boot(p, server, append(strings.Fields(c.flags), "--delay=0.1")...)
			noError(t, "set", s.dial().request("set a 0 0 1\r\nx", "STORED"))
			b.signal(sig.TERM)
			b.wantExit(0)
			time.Sleep(1100 * time.Millisecond) // memcached counts whole seconds, and takes a restart within the same second for a stopped clock
			s.boot(p, server)
			noError(t, "after the next start", s.dial().request("get a", c.answer))
		})
	}
}

// TestPresetNATS: with the preset NATS announces its lame duck mode to clients, accepts no
// new ones, and exits with 0. TERM cuts clients at once.
func TestPresetNATS(t *testing.T) {
	t.Parallel()
	needs(t, "nats-server")
	s := newSite(t, 18550)
	p := presetNamed(t, "nats")
	subscribe := func() lineConn {
		w := s.dial()
		noError(t, "subscribe", w.request(`CONNECT {"verbose":false,"protocol":1}`+"\r\nSUB x 1\r\nPING", "PONG"))
		return w
	}
	const server = "nats-server -a 127.0.0.1 -p PORT"
	b := s.boot(p, server, append(presetFlags(p), "--delay=0.1")...)
	client := subscribe()
	b.signal(sig.TERM)
	for announced := false; !announced; {
		line, err := client.skipTo("INFO")
		if err != nil {
			t.Fatal("no lame duck mode announced: ", err)
		}
		announced = strings.Contains(line, `"ldm":true`)
	}
	awaitPort(t, s.addr(), false)
	noError(t, "a message in lame duck mode", client.request("PUB x 1\r\na", "MSG x 1"))
	b.wantExit(0)

	b = s.boot(p, server)
	client = subscribe()
	b.signal(sig.TERM)
	if _, err := client.skipTo("INFO"); err == nil {
		t.Error("TERM did not cut the client")
	}
	t.Log("after TERM: exit code", b.waitExit())
}

const sidekiqJob = `
require "net/http"
class Job
  include Sidekiq::Worker
  def perform
    Sidekiq.redis { |redis| redis.set("answer", Net::HTTP.get("127.0.0.1", "/", BACKEND)) }
  end
end
`

// TestPresetSidekiq: with the preset, a job in progress can finish.
func TestPresetSidekiq(t *testing.T) {
	t.Parallel()
	needs(t, "sidekiq", "redis-server")
	s := newSite(t, 18560)
	queue := exec.Command("redis-server", s.command("--bind 127.0.0.1 --port PORT --dir DIR --save ~")...)
	noError(t, "redis-server", queue.Start())
	t.Cleanup(func() { queue.Process.Kill(); queue.Wait() })
	awaitPort(t, s.addr(), true)
	p := presetNamed(t, "sidekiq")
	flags := append(presetFlags(p), "--delay=0.1", "--grace-period=30", "--log-level=debug", "--")
	b := boot(t, []string{"REDIS_URL=redis://" + s.addr()}, append(flags, s.command("sidekiq -t 20 -r "+s.write("job.rb", sidekiqJob))...)...)
	f := s.startRequest(func() error {
		job := `{"class":"Job","args":[],"jid":"0123456789abcdef01234567","queue":"default","created_at":1,"enqueued_at":1,"retry":false}`
		if err := s.dial().request("RPUSH queue:default '"+job+"'", ":1"); err != nil {
			return err
		}
		<-s.backend.released
		for end := time.Now().Add(testutil.Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			conn := s.dial()
			fmt.Fprint(conn.conn, "GET answer\r\n")
			line, err := conn.skipTo("$")
			if err != nil || strings.HasPrefix(line, "$6") {
				return err
			}
			conn.conn.Close()
		}
		return errors.New("the job has not finished")
	})
	wantRecognized(t, b, p)
	b.signal(sig.TERM)
	b.err.wait(t, "sending TERM to the command")
	f.wantInFlight(cutWindow)
	f.wantFinished()
	b.wantExit(0)
}
