package presets_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// cutWindow is how long a request must go on after the stop signal to count as not cut: a cut
// has no sign that would come earlier.
const cutWindow = 700 * time.Millisecond

// clients begin a request that the server cannot answer by itself, and return when it is in flight.
// finish waits for cutWindow, has the request answered, and returns an error if it was cut.
var clients = map[string]func(s *site) (finish func() error){
	"HTTP":    func(s *site) func() error { return s.request(get) },
	"FastCGI": func(s *site) func() error { return s.request(fastCGI) },
	"Sidekiq": func(s *site) func() error { return s.request(runJob) },
	"Celery":  func(s *site) func() error { return s.request(runTask) },
	"PostgreSQL": func(s *site) func() error {
		const client = "psql -XqAt -h 127.0.0.1 -p PORT -U postgres -v ON_ERROR_STOP=1 postgres"
		return s.transaction(client, "commit;\n\\echo done") // psql's own echo: PgBouncer takes no further query
	},
	"MariaDB": func(s *site) func() error {
		return s.transaction("mariadb --no-defaults --unbuffered -h 127.0.0.1 -P PORT -BNn x", "commit; select 'done';")
	},
	"Redis": func(s *site) func() error {
		blocked := s.dial()
		fmt.Fprint(blocked, "BLPOP queue 0\r\n")
		testutil.Eventually(s.t, "a client is blocked", func() bool {
			line, err := s.dial().ask("INFO clients", "blocked_clients:")
			return err == nil && strings.TrimSpace(line) == "blocked_clients:1"
		})
		return func() error {
			time.Sleep(cutWindow)
			if conn, err := net.Dial("tcp", s.addr()); err == nil {
				fmt.Fprint(conn, "RPUSH queue a\r\n")
				conn.Close()
			}
			_, err := blocked.ask("", "*2")
			return err
		}
	},
	"NATS": func(s *site) func() error {
		c := s.dial()
		c.mustAsk(s, `CONNECT {"verbose":false,"protocol":1}`+"\r\nSUB x 1\r\nPING", "PONG")
		return func() error {
			time.Sleep(cutWindow)
			_, err := c.ask("PUB x 1\r\na", "MSG x 1")
			return err
		}
	},
}

// request runs a client, and returns when its request has arrived at the backend.
func (s *site) request(run func(s *site) error) (finish func() error) {
	s.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- run(s) }()
	select {
	case <-s.arrived:
	case err := <-ended:
		s.t.Fatalf("the request ended before it was in flight: %v", err)
	}
	return func() error {
		select {
		case err := <-ended:
			return err
		case <-time.After(cutWindow):
		}
		close(s.released)
		return <-ended // clients have deadlines
	}
}

// get sends a request over HTTP. Tomcat answers only after it has compiled the page.
func get(s *site) error {
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + s.addr() + "/slow.jsp")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || !strings.Contains(string(text), "served")) {
		err = errors.New(answer.Status)
	}
	return err
}

// fastCGI asks php-fpm to run slow.php; see the FastCGI specification.
func fastCGI(s *site) error {
	record := func(kind byte, content string) string {
		return string([]byte{1, kind, 0, 1, byte(len(content) >> 8), byte(len(content)), 0, 0}) + content
	}
	params := ""
	for name, value := range map[string]string{"SCRIPT_FILENAME": s.dir + "/slow.php", "REQUEST_METHOD": "GET"} {
		params += string([]byte{byte(len(name)), byte(len(value))}) + name + value
	}
	const begin, param, stdin = 1, 4, 5
	conn := s.dial()
	io.WriteString(conn, record(begin, "\x00\x01\x00\x00\x00\x00\x00\x00")+record(param, params)+record(param,
		"")+record(stdin, ""))
	answer, err := io.ReadAll(conn.in)
	if err == nil && !strings.Contains(string(answer), "served") {
		err = errors.New("unexpected reply: " + string(answer))
	}
	return err
}

// runJob gives Sidekiq a job.
func runJob(s *site) error {
	const job = `{"class":"Job","args":[],"jid":"0123456789abcdef01234567","queue":"default","created_at":1,"enqueued_at":1,"retry":false}`
	if _, err := s.dial().ask("RPUSH queue:default '"+job+"'", ":1"); err != nil {
		return err
	}
	<-s.released
	_, err := s.dial().ask("BLPOP answer 15", "$6")
	return err
}

// runTask gives Celery a task, which writes a file.
func runTask(s *site) error {
	send := s.command("env PYTHONPATH=DIR /usr/bin/python3 -c 'import tasks; tasks.job.delay()'")
	if output, err := send.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	<-s.released
	for end := time.Now().Add(testutil.Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if answer, _ := os.ReadFile(s.dir + "/answer"); string(answer) == "served" {
			return nil
		}
	}
	return errors.New("the task has not ended")
}

// transaction opens a transaction with a database's client program, beside an idle client.
func (s *site) transaction(client, commit string) (finish func() error) {
	s.t.Helper()
	testutil.Eventually(s.t, "the database answers", func() bool {
		cmd := s.command(client)
		cmd.Stdin = strings.NewReader("select 1;")
		return cmd.Run() == nil
	})
	idle, open := s.client(client), s.client(client)
	idle.mustAsk(s, "select 'idle';", "idle")
	open.mustAsk(s, "create table n (n int); begin; insert into n values (1); select 'under way';", "under way")
	return func() error {
		time.Sleep(cutWindow)
		_, err := open.ask("insert into n values (2); "+commit, "done")
		return err
	}
}

// session is a conversation in lines, with a server or with its client program.
type session struct {
	io.Writer
	in *bufio.Reader
}

// dial begins a session with the site's server.
func (s *site) dial() session {
	conn := testutil.Must(net.Dial("tcp", s.addr()))
	s.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(2 * testutil.Patience))
	return session{conn, bufio.NewReader(conn)}
}

// client begins a session with a client program of the site's server.
func (s *site) client(line string) session {
	cmd := s.command(line)
	in, out := testutil.Must(cmd.StdinPipe()), testutil.Must(cmd.StdoutPipe())
	testutil.Must(0, cmd.Start())
	s.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return session{in, bufio.NewReader(out)}
}

// ask sends a line, if it is not empty, and skips to a line with the prefix.
func (c session) ask(line, prefix string) (reply string, err error) {
	if line != "" {
		fmt.Fprint(c, line+"\r\n")
	}
	for err == nil {
		reply, err = c.in.ReadString('\n')
		if strings.HasPrefix(reply, prefix) {
			break
		}
	}
	return reply, err
}

// mustAsk is ask for a reply that has to come.
func (c session) mustAsk(s *site, line, prefix string) {
	s.t.Helper()
	if reply, err := c.ask(line, prefix); err != nil {
		s.t.Fatalf("%s: %q, %v", line, reply, err)
	}
}
