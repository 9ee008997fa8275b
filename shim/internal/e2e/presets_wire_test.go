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

	"github.com/lameduck-init/lameduck/shim"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// wire is a connection to a server that speaks in lines.
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

// ask says a line and wants an answer that begins with prefix.
func (w lineConn) ask(line, prefix string) error {
	fmt.Fprint(w.conn, line+"\r\n")
	return w.skipTo(prefix)
}

// hear wants a line that begins with prefix, and passes over others.
func (w lineConn) skipTo(prefix string) error {
	for {
		line, err := w.in.ReadString('\n')
		if err != nil || strings.HasPrefix(line, prefix) {
			return err
		}
	}
}

// expect fails the test where err is not nil.
func noError(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// served is a server of this site, up and recognised.
func (s *site) boot(p *shim.Preset, command string, flags ...string) *box {
	s.t.Helper()
	b := boot(s.t, []string{"HOME=" + s.dir}, append(append(flags, "--"), s.command(command)...)...)
	awaitPort(s.t, s.addr(), true)
	if p != nil {
		knows(s.t, b, p)
	}
	return b
}

// TestPresetRedis: a blocked command gets its answer if there is a hold to wait
// for it, and the data are saved. Else it is cut.
func TestPresetRedis(t *testing.T) {
	t.Parallel()
	needs(t, "redis-server")
	s := newSite(t, 18530)
	p := named(t, "redis")
	const server = "redis-server --bind 127.0.0.1 --port PORT --dir DIR --save 900~1"
	blocked := func(s *site) func() error {
		return func() error {
			go func() { // Redis answers in order: now the one before is blocked
				time.Sleep(cutWindow / 4)
				s.backend.arrived <- true
			}()
			return s.dial().ask("BLPOP queue 0", "*2")
		}
	}
	b := s.boot(p, server, append(presetFlags(p), "--until=quiet", "--delay=0", "--quiet-for=0.3", "--grace-period=30")...)
	f := s.startRequest(blocked(s))
	b.signal(sig.TERM)
	b.err.wait(t, "until quiet")
	f.wantInFlight(cutWindow)
	noError(t, "a push during the hold", s.dial().ask("RPUSH queue a", ":"))
	noError(t, "a value to save", s.dial().ask("SET a 1", "+OK"))
	f.wantFinished()
	b.wantExit(0)
	if _, err := os.Stat(s.dir + "/dump.rdb"); err != nil {
		t.Error("nothing was saved: ", err)
	}

	again := s.withNewBackend()
	b = again.boot(p, server, append(presetFlags(p), "--delay=0.1")...)
	f = again.startRequest(blocked(again))
	b.signal(sig.TERM)
	f.wantCut()
	b.wantExit(0)
}

// TestPresetMemcached: with a memory file the cache is there after the next start,
// unless it was TERM that stopped it.
func TestPresetMemcached(t *testing.T) {
	t.Parallel()
	needs(t, "memcached")
	p := named(t, "memcached")
	for i, c := range []struct{ flags, answer string }{{strings.Join(presetFlags(p), " "), "VALUE"}, {"--rewrite=TERM:TERM", "END"}} {
		t.Run(c.answer, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 18540+i)
			const server = "memcached -u root -l 127.0.0.1 -p PORT -m 64 -e DIR/memory"
			b := s.boot(p, server, append(strings.Fields(c.flags), "--delay=0.1")...)
			noError(t, "set", s.dial().ask("set a 0 0 1\r\nx", "STORED"))
			b.signal(sig.TERM)
			b.wantExit(0)
			time.Sleep(1100 * time.Millisecond) // its clock has whole seconds, and must not seem to stand still
			s.boot(p, server)
			noError(t, "after the next start", s.dial().ask("get a", c.answer))
		})
	}
}

// TestPresetNATS: the clients are told, nobody new gets in, and then it ends with
// 0. TERM cuts at once.
func TestPresetNATS(t *testing.T) {
	t.Parallel()
	needs(t, "nats-server")
	s := newSite(t, 18550)
	p := named(t, "nats")
	subscribe := func() lineConn {
		w := s.dial()
		noError(t, "subscribe", w.ask(`CONNECT {"verbose":false,"protocol":1}`+"\r\nSUB x 1\r\nPING", "PONG"))
		return w
	}
	const server = "nats-server -a 127.0.0.1 -p PORT"
	b := s.boot(p, server, append(presetFlags(p), "--delay=0.1")...)
	client := subscribe()
	b.signal(sig.TERM)
	for told := false; !told; {
		line, err := client.in.ReadString('\n')
		if err != nil {
			t.Fatal("the client was not told: ", err)
		}
		told = strings.HasPrefix(line, "INFO") && strings.Contains(line, `"ldm":true`)
	}
	awaitPort(t, s.addr(), false)
	noError(t, "while it is a lame duck", client.ask("PUB x 1\r\na", "MSG x 1"))
	b.wantExit(0)

	b = s.boot(p, server)
	client = subscribe()
	b.signal(sig.TERM)
	if err := client.skipTo("INFO"); err == nil {
		t.Error("TERM cuts nobody")
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

// TestPresetSidekiq: the job that is under way ends.
func TestPresetSidekiq(t *testing.T) {
	t.Parallel()
	needs(t, "sidekiq", "redis-server")
	s := newSite(t, 18560)
	queue := exec.Command("redis-server", s.command("--bind 127.0.0.1 --port PORT --dir DIR --save ~")...)
	noError(t, "redis-server", queue.Start())
	t.Cleanup(func() { queue.Process.Kill(); queue.Wait() })
	awaitPort(t, s.addr(), true)
	p := named(t, "sidekiq")
	flags := append(presetFlags(p), "--delay=0.1", "--grace-period=30", "--log-level=debug", "--")
	b := boot(t, []string{"REDIS_URL=redis://" + s.addr()}, append(flags, s.command("sidekiq -t 20 -r "+s.write("job.rb", sidekiqJob))...)...)
	f := s.startRequest(func() error {
		job := `{"class":"Job","args":[],"jid":"0123456789abcdef01234567","queue":"default","created_at":1,"enqueued_at":1,"retry":false}`
		if err := s.dial().ask("RPUSH queue:default '"+job+"'", ":1"); err != nil {
			return err
		}
		<-s.backend.released
		for end := time.Now().Add(testutil.Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			w := s.dial()
			fmt.Fprint(w.conn, "GET answer\r\n")
			if line, err := w.in.ReadString('\n'); err != nil || strings.HasPrefix(line, "$6") {
				return err
			}
			w.conn.Close()
		}
		return errors.New("the job did not end")
	})
	knows(t, b, p)
	b.signal(sig.TERM)
	b.err.wait(t, "sending TERM to the command")
	f.wantInFlight(cutWindow)
	f.wantFinished()
	b.wantExit(0)
}
