package presets_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

const (
	begin  = "create table n (n int); begin; insert into n values (1); select 'under way';"
	commit = "insert into n values (2); commit;\n\\echo done" // psql's own echo: PgBouncer takes no further query
	psql   = "psql -XqAt -h 127.0.0.1 -p PORT -U postgres -v ON_ERROR_STOP=1 postgres"
	maria  = "mariadb --no-defaults --unbuffered -h 127.0.0.1 -P PORT -BNn x"
)

// asNobody are the words before a program that refuses to run as root. In a new user
// namespace, root's files belong to the user nobody.
const asNobody = "unshare --user --map-user=65534 --map-group=65534 -- "

// postgres makes a database, and returns the command that serves it.
func (s *site) postgres() string {
	s.t.Helper()
	box.Needs(s.t, "psql", "unshare")
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // Debian keeps them out of PATH
	if len(bins) == 0 {
		s.t.Skip("postgres is not installed")
	}
	bin := asNobody + bins[len(bins)-1]
	initdb := box.Words(s.expand(bin + "/initdb -D DIR/data -U postgres -A trust -E UTF8 --no-locale --no-sync"))
	if output, err := exec.Command(initdb[0], initdb[1:]...).CombinedOutput(); err != nil {
		if strings.Contains(string(output), "unshare") {
			s.t.Skipf("no user namespace: %s", output)
		}
		s.t.Fatalf("%v: %s", err, output)
	}
	return s.expand(bin + "/postgres -D DIR/data -p PORT -k '' -c fsync=off -c listen_addresses=127.0.0.1")
}

// awaitQuery waits until the database answers a query.
func (s *site) awaitQuery(client string) {
	s.t.Helper()
	words := box.Words(s.expand(client))
	testutil.Eventually(s.t, "the database answers", func() bool {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Stdin = strings.NewReader("select 1;")
		return cmd.Run() == nil
	})
}

// wantTransactionSaved stops a server of PostgreSQL's clients, to whose command lameduck sends
// the given signal, and checks that an open transaction can finish and that an idle client
// does not keep the server from ending.
func wantTransactionSaved(s *site, b *box.Box, sent string) {
	s.t.Helper()
	idle, open := s.client(psql), s.client(psql)
	idle.want(s.t, true, "select 'idle';", "idle")
	open.want(s.t, true, begin, "under way")
	b.Stop()
	b.Err.Wait("sending " + sent + " to the command")
	time.Sleep(cutWindow)
	open.want(s.t, true, commit, "done")
	b.WantExit(0)
	idle.want(s.t, false, "select 'idle';", "idle")
}

// TestPresetPostgres: with the preset, an open transaction can finish, and an idle client
// does not keep the server from ending. INT, the image's STOPSIGNAL, cuts transactions.
func TestPresetPostgres(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	words := s.postgres()
	b := s.boot("--preset=postgres --delay=0.1 --log-level=debug", words)
	s.awaitQuery(psql)
	wantRecognized(b, "postgres")
	wantTransactionSaved(s, b, "TERM")

	b = s.boot("--delay=0.1 --stop-signal=INT --rewrite=TERM:INT", words)
	s.awaitQuery(psql)
	open := s.client(psql)
	open.want(t, true, strings.Replace(begin, "create", "drop table n; create", 1), "under way")
	b.Stop()
	b.WantExit(0)
	open.want(t, false, commit, "done")
}

// TestPresetPgBouncer: with the preset, an open transaction can finish, and an idle client
// does not keep the pooler from ending.
func TestPresetPgBouncer(t *testing.T) {
	t.Parallel()
	box.Needs(t, "pgbouncer")
	s := newSite(t, "")
	words := box.Words(s.postgres())
	database := exec.Command(words[0], words[1:]...)
	testutil.Must(0, database.Start())
	t.Cleanup(func() { database.Process.Signal(syscall.SIGQUIT); database.Wait() })
	s.awaitQuery(psql)
	front := newSite(t, "pgbouncer")
	ini := strings.Replace(string(testutil.Must(os.ReadFile(front.dir+"/ini"))), "DATABASE", fmt.Sprint(s.port), 1)
	testutil.WriteFile(t, front.dir+"/ini", ini)
	b := front.boot("--preset=pgbouncer --delay=0.1 --log-level=debug", asNobody+"pgbouncer DIR/ini")
	front.awaitQuery(psql)
	wantRecognized(b, "pgbouncer")
	wantTransactionSaved(front, b, "INT")
}

// TestPresetMariaDB: TERM cuts an open transaction, and a hold waits for the transaction.
func TestPresetMariaDB(t *testing.T) {
	t.Parallel()
	box.Needs(t, "mariadbd", "mariadb")
	s := newSite(t, "")
	testutil.Must(0, os.MkdirAll(s.dir+"/data/x", 0o755))
	testutil.WriteFile(t, s.dir+"/data/x/db.opt", "")
	const server = "mariadbd --no-defaults --user=root --datadir=DIR/data --skip-grant-tables --bind-address=127.0.0.1 --port=PORT " +
		"--socket=DIR/socket --pid-file=DIR/pid --innodb-log-file-size=4M --innodb-buffer-pool-size=8M --innodb-flush-log-at-trx-commit=0"
	for _, hold := range []bool{true, false} {
		flags, sql := "--preset=mariadb --delay=0.1", strings.Replace(begin, "create", "drop table n; create", 1)
		if hold {
			flags, sql = "--preset=mariadb --until=drained --quiet-for=0.3 --grace-period=30", begin
		}
		b := s.boot(flags, server)
		s.awaitQuery(maria)
		wantRecognized(b, "mariadb")
		open := s.client(maria)
		open.want(t, true, sql, "under way")
		b.Trigger()
		if !hold {
			b.WantExit(0)
			open.want(t, false, "commit; select 'done';", "done")
			continue
		}
		time.Sleep(cutWindow)
		open.want(t, true, "insert into n values (2); commit; select 'done';", "done")
		open.Writer.(io.Closer).Close()
		b.WantExit(0)
	}
}

// TestPresetRedis: with a hold a client's blocking command gets its reply, and the data are
// saved. Without a hold the command is cut.
func TestPresetRedis(t *testing.T) {
	t.Parallel()
	box.Needs(t, "redis-server")
	s := newSite(t, "")
	for _, hold := range []bool{true, false} {
		flags := "--preset=redis --delay=0.1"
		if hold {
			flags = "--preset=redis --until=quiet --quiet-for=0.3 --grace-period=30"
		}
		b := s.boot(flags, "redis-server --bind 127.0.0.1 --port PORT --dir DIR --save '900 1'")
		wantRecognized(b, "redis")
		blocked := s.dial()
		fmt.Fprint(blocked, "BLPOP queue 0\r\n")
		testutil.Eventually(t, "a client is blocked", func() bool {
			line, err := s.dial().ask("INFO clients", "blocked_clients:")
			return err == nil && strings.TrimSpace(line) == "blocked_clients:1"
		})
		b.Trigger()
		if hold {
			time.Sleep(cutWindow)
			s.dial().want(t, true, "RPUSH queue a", ":")
			s.dial().want(t, true, "SET a 1", "+OK")
		}
		blocked.want(t, hold, "", "*2")
		b.WantExit(0)
		if _, err := os.Stat(s.dir + "/dump.rdb"); err != nil {
			t.Error("the data were not saved: ", err)
		}
	}
}

// TestPresetMemcached: with a memory file the cache survives a stop by the preset, and does
// not survive TERM.
func TestPresetMemcached(t *testing.T) {
	t.Parallel()
	box.Needs(t, "memcached")
	for flags, answer := range map[string]string{"--preset=memcached": "VALUE", "--rewrite=TERM:TERM": "END"} {
		const server = "memcached -u root -l 127.0.0.1 -p PORT -m 64 -e DIR/memory"
		s := newSite(t, "")
		b := s.boot(flags+" --delay=0.1", server)
		wantRecognized(b, "memcached")
		s.dial().want(t, true, "set a 0 0 1\r\nx", "STORED")
		b.Stop()
		b.WantExit(0)
		// memcached counts whole seconds, and takes a restart within the same second for a stopped clock
		time.Sleep(1100 * time.Millisecond)
		s.boot("", server)
		s.dial().want(t, true, "get a", answer)
	}
}

// TestPresetNATS: with the preset NATS announces its lame duck mode to clients, accepts no
// new ones, and exits with 0. TERM cuts clients at once.
func TestPresetNATS(t *testing.T) {
	t.Parallel()
	box.Needs(t, "nats-server")
	s := newSite(t, "")
	for _, flags := range []string{"--preset=nats --delay=0.1", ""} {
		b := s.boot(flags, "nats-server -a 127.0.0.1 -p PORT")
		wantRecognized(b, "nats")
		client := s.dial()
		client.want(t, true, `CONNECT {"verbose":false,"protocol":1}`+"\r\nSUB x 1\r\nPING", "PONG")
		b.Stop()
		info, err := client.ask("", "INFO")
		if (err == nil && strings.Contains(info, `"ldm":true`)) != (flags != "") {
			t.Errorf("with %q: %s %v", flags, info, err)
		}
		if flags != "" {
			box.AwaitPort(t, s.addr(), false)
			client.want(t, true, "PUB x 1\r\na", "MSG x 1")
			b.WantExit(0)
		}
	}
}

// TestPresetSidekiq: with the preset, a job in progress can finish.
func TestPresetSidekiq(t *testing.T) {
	t.Parallel()
	box.Needs(t, "sidekiq", "redis-server")
	s := newSite(t, "sidekiq")
	queue := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", fmt.Sprint(s.port), "--dir", s.dir, "--save",
		"")
	testutil.Must(0, queue.Start())
	t.Cleanup(func() { queue.Process.Kill(); queue.Wait() })
	box.AwaitPort(t, s.addr(), true)
	b := s.boot("--preset=sidekiq --delay=0.1 --grace-period=30 --log-level=debug",
		"env REDIS_URL=redis://127.0.0.1:PORT sidekiq -t 20 -r DIR/job.rb")
	f := s.request(func(s *site) error {
		const job = `{"class":"Job","args":[],"jid":"0123456789abcdef01234567","queue":"default","created_at":1,"enqueued_at":1,"retry":false}`
		if _, err := s.dial().ask("RPUSH queue:default '"+job+"'", ":1"); err != nil {
			return err
		}
		<-s.released
		_, err := s.dial().ask("BLPOP answer 15", "$6")
		return err
	})
	wantRecognized(b, "sidekiq")
	b.Stop()
	b.Err.Wait("sending TERM to the command")
	f.wantFinished()
	b.WantExit(0)
}

// TestPresetCelery: with the preset, a task in progress can finish. QUIT cuts the task.
func TestPresetCelery(t *testing.T) {
	t.Parallel()
	box.Needs(t, "celery")
	for _, cut := range []bool{false, true} {
		s := newSite(t, "celery")
		flags := "--preset=celery --delay=0.1 --grace-period=60 --log-level=debug"
		if cut {
			flags = "--stop-schedule=QUIT --grace-period=60 --log-level=debug"
		}
		env := []string{"PYTHONPATH=" + s.dir, "PATH=/usr/bin:" + os.Getenv("PATH")}
		b := box.Setup{Env: env}.Boot(t, flags, "celery", "-A", "tasks", "worker", "--concurrency=1", "--loglevel=INFO")
		b.Err.Wait(" ready.")
		f := s.request(func(s *site) error {
			send := exec.Command("/usr/bin/python3", "-c", "import tasks; tasks.job.delay()")
			send.Env = append(os.Environ(), "PYTHONPATH="+s.dir)
			if output, err := send.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, output)
			}
			<-s.released
			return nil
		})
		if !cut {
			wantRecognized(b, "celery")
		}
		b.Stop()
		if cut {
			b.Err.Wait("sending QUIT to the command")
			b.WaitExit()
			close(f.released)
		} else {
			b.Err.Wait("sending TERM to the command")
			f.wantFinished()
			b.WantExit(0)
		}
		answer, _ := os.ReadFile(s.dir + "/answer")
		if finished := string(answer) == "served"; finished == cut {
			t.Errorf("the task wrote %q, cut: %v", answer, cut)
		}
	}
}
