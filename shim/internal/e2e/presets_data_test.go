package e2e

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// transaction returns a client for startRequest, which runs begin and, when the backend's
// replies are released, end.
func (s *site) transaction(client []string, begin, end string) func() error {
	return func() error {
		cmd := exec.Command(client[0], client[1:]...)
		var complaints strings.Builder
		cmd.Stderr = &complaints
		stdin, out := testutil.Must(cmd.StdinPipe()), testutil.Must(cmd.StdoutPipe())
		if err := cmd.Start(); err != nil {
			return err
		}
		fmt.Fprintln(stdin, begin, "select 'under way';")
		if reply := bufio.NewScanner(out); reply.Scan() && reply.Text() == "under way" {
			s.backend.arrived <- true
			<-s.backend.released
			fmt.Fprintln(stdin, end)
		}
		stdin.Close()
		if err := cmd.Wait(); err != nil || complaints.Len() > 0 {
			return fmt.Errorf("%w: %s", err, complaints.String())
		}
		return nil
	}
}

// withNewBackend returns the same site with another backend, for a second client.
func (s *site) withNewBackend() *site { return &site{s.t, s.dir, s.port, newBackend(s.t)} }

const (
	beginSQL  = "create table n (n int); begin; insert into n values (1);"
	commitSQL = "insert into n values (2); commit;"
)

// asNobody are the words before a program that refuses to run as root. In a new user
// namespace, root's files belong to the user nobody.
var asNobody = []string{"unshare", "--user", "--map-user=65534", "--map-group=65534", "--"}

// postgresBin returns the directory of PostgreSQL's programs, which Debian keeps out of
// PATH.
func postgresBin(t *testing.T) string {
	needs(t, "psql", "unshare", "sh")
	out, _ := exec.Command("sh", "-c", "ls -d /usr/lib/postgresql/*/bin").Output()
	dirs := strings.Fields(string(out))
	if len(dirs) == 0 {
		t.Skip("postgres is not installed")
	}
	return dirs[len(dirs)-1]
}

// newPostgres makes a database, and returns the command that serves the database.
func (s *site) newPostgres() []string {
	s.t.Helper()
	bin := postgresBin(s.t)
	data := s.dir + "/data"
	initdb := append(asNobody, bin+"/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	if output, err := exec.Command(initdb[0], initdb[1:]...).CombinedOutput(); err != nil {
		if strings.Contains(string(output), "unshare") {
			s.t.Skipf("no user namespace: %s", output)
		}
		s.t.Fatalf("%v: %s", err, output)
	}
	return append(asNobody, bin+"/postgres", "-D", data, "-p", fmt.Sprint(s.port), "-k", "", "-c", "fsync=off", "-c", "listen_addresses=127.0.0.1")
}

func (s *site) psqlCommand() []string {
	return s.command("psql -XqAt -h 127.0.0.1 -p PORT -U postgres -v ON_ERROR_STOP=1 postgres")
}

// awaitQuery waits until the database answers a query.
func (s *site) awaitQuery(client []string) {
	s.t.Helper()
	var output []byte
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the client's last output: %s", output)
		}
	}()
	testutil.Eventually(s.t, "the database answers", func() bool {
		cmd := exec.Command(client[0], client[1:]...)
		cmd.Stdin = strings.NewReader("select 1;")
		var err error
		output, err = cmd.CombinedOutput()
		return err == nil
	})
}

// wantTransactionSaved stops a server of PostgreSQL's clients, to whose command lameduck sends
// the given signal, and checks that an open transaction can finish and that an idle client
// does not keep the server from ending.
func (s *site) wantTransactionSaved(b *box, sent sig.Signal) {
	s.t.Helper()
	pool := s.withNewBackend()
	idle := pool.startRequest(pool.transaction(s.psqlCommand(), "", "select 1;"))
	open := s.startRequest(s.transaction(s.psqlCommand(), beginSQL, commitSQL))
	b.signal(sig.TERM)
	b.err.wait(s.t, "sending "+sent.String()+" to the command")
	open.wantInFlight(cutWindow)
	open.wantFinished()
	b.wantExit(0)
	idle.wantLost()
	s.t.Log(b.report())
}

// TestPresetPostgres: with the preset, an open transaction can finish, and an idle client
// does not keep the server from ending. Without, INT cuts transactions and TERM waits for
// clients.
func TestPresetPostgres(t *testing.T) {
	t.Parallel()
	s := newSite(t, 18501)
	p, words := presetNamed(t, "postgres"), s.newPostgres()
	serve := func(flags ...string) *box {
		b := boot(t, nil, append(append(flags, "--"), words...)...)
		s.awaitQuery(s.psqlCommand())
		return b
	}
	b := serve(append(presetFlags(p), "--delay=0.1", "--log-level=debug")...)
	wantRecognized(t, b, p)
	s.wantTransactionSaved(b, sig.TERM)

	again := s.withNewBackend()
	b = serve("--delay=0.1", "--stop-signal=INT", "--rewrite=TERM:INT") // what the image's STOPSIGNAL does
	open := again.startRequest(again.transaction(s.psqlCommand(), "drop table n;"+beginSQL, commitSQL))
	b.signal(sig.TERM)
	b.wantExit(0)
	open.wantLost()
}

// TestPresetPgBouncer: with the preset, an open transaction can finish, and an idle client
// does not keep the pooler from ending.
func TestPresetPgBouncer(t *testing.T) {
	t.Parallel()
	needs(t, "pgbouncer")
	s := newSite(t, 18510)
	words := s.newPostgres()
	database := exec.Command(words[0], words[1:]...)
	if err := database.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { database.Process.Signal(unix.SIGQUIT); database.Wait() })
	s.awaitQuery(s.psqlCommand())

	ini := s.write("pgbouncer.ini", "[databases]\n* = host=127.0.0.1 port=PORT user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = 18511\n"+
		"unix_socket_dir =\nauth_type = any\npool_mode = transaction\n")
	front := &site{t, s.dir, 18511, newBackend(t)}
	p := presetNamed(t, "pgbouncer")
	serve := func(flags ...string) *box {
		b := boot(t, nil, append(append(append(flags, "--"), asNobody...), "pgbouncer", ini)...)
		front.awaitQuery(front.psqlCommand())
		return b
	}
	b := serve(append(presetFlags(p), "--delay=0.1", "--log-level=debug")...)
	wantRecognized(t, b, p)
	front.wantTransactionSaved(b, sig.INT)

	if version, _ := exec.Command("pgbouncer", "--version").Output(); !strings.HasPrefix(string(version), "PgBouncer 1.1") {
		return // since version 1.23 TERM waits for all clients
	}
	again := front.withNewBackend()
	b = serve()
	open := again.startRequest(again.transaction(front.psqlCommand(), "drop table n;"+beginSQL, commitSQL))
	b.signal(sig.TERM)
	t.Log("after TERM: exit code", b.waitExit())
	open.wantLost()
}

// TestPresetMariaDB: TERM cuts an open transaction, and a hold waits for the transaction.
func TestPresetMariaDB(t *testing.T) {
	t.Parallel()
	needs(t, "mariadbd", "mariadb")
	s := newSite(t, 18520)
	p := presetNamed(t, "mariadb")
	client := s.command("mariadb --no-defaults -h 127.0.0.1 -P PORT -BNn x")
	serve := func(flags ...string) *box {
		s.write("data/x/db.opt", "")
		words := s.command("mariadbd --no-defaults --user=root --datadir=DIR/data --skip-grant-tables --bind-address=127.0.0.1 --port=PORT " +
			"--socket=DIR/socket --pid-file=DIR/pid --innodb-log-file-size=4M --innodb-buffer-pool-size=8M --innodb-flush-log-at-trx-commit=0")
		b := boot(t, nil, append(append(flags, "--"), words...)...)
		s.awaitQuery(client)
		return b
	}
	b := serve(append(presetFlags(p), "--until=drained", "--delay=0", "--quiet-for=0.3", "--grace-period=30")...)
	wantRecognized(t, b, p)
	open := s.startRequest(s.transaction(client, beginSQL, commitSQL))
	b.signal(sig.TERM)
	b.err.wait(t, "until drained")
	open.wantInFlight(cutWindow)
	open.wantFinished()
	b.wantExit(0)
	t.Log(b.report())

	again := s.withNewBackend()
	b = serve(append(presetFlags(p), "--delay=0.1")...)
	open = again.startRequest(again.transaction(client, "drop table n;"+beginSQL, commitSQL))
	b.signal(sig.TERM)
	b.wantExit(0)
	open.wantLost()
}
