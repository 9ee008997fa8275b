package truth

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/lib/pq"
)

// database is a client of PostgreSQL with one connection at most.
type database struct {
	t  *trial
	db *sql.DB
}

// database returns a client with a kept connection, or with a connection for each query.
func (c *client) database(keep bool) *database {
	connector := must(pq.NewConnector(c.postgresSource()))
	connector.Dialer(pqDialer{c})
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	if !keep {
		db.SetMaxIdleConns(-1)
	}
	return &database{c.t, db}
}

func (c *client) postgresSource() string {
	mode := "disable"
	if c.t.c.server.tls {
		mode = "require"
	}
	return fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres sslmode=%s", serverEnd, port, mode)
}

// pqDialer connects from a client's address.
type pqDialer struct{ c *client }

func (d pqDialer) Dial(network, address string) (net.Conn, error) {
	return d.c.dialContext(context.Background(), network, address)
}

func (d pqDialer) DialTimeout(network, address string, _ time.Duration) (net.Conn, error) {
	return d.Dial(network, address)
}

// run makes a query and reads all rows.
func (d *database) run(query string) error {
	rows, err := d.db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// query makes a counted query.
func (d *database) query(text string) { d.t.real(func() error { return d.run(text) }) }

// ping makes a query without counting.
func (d *database) ping(text string) { d.t.spare(d.run(text)) }

// transaction makes a counted query in a transaction, and a counted commit at a moment.
func (d *database) transaction(until time.Duration) {
	var tx *sql.Tx
	d.t.real(func() (err error) {
		tx, err = d.db.Begin()
		if err == nil {
			_, err = tx.Exec("SELECT 1")
		}
		return err
	})
	d.t.wait(until)
	d.t.real(func() error {
		if tx == nil {
			return errors.New("no transaction")
		}
		return tx.Commit()
	})
}

// fill copies rows of 80 kB into a table, one row each period: one counted request.
func (d *database) fill(count int, period time.Duration) {
	d.t.real(func() error {
		tx, err := d.db.Begin()
		if err != nil {
			return err
		}
		if _, err := tx.Exec("CREATE TABLE lines (line text)"); err != nil {
			return err
		}
		copying, err := tx.Prepare(pq.CopyIn("lines", "line"))
		if err != nil {
			return err
		}
		for range count {
			if _, err := copying.Exec(strings.Repeat("x", 80_000)); err != nil {
				return err
			}
			d.t.sleep(period)
		}
		if _, err := copying.Exec(); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// listen subscribes to notifications and reads them.
func (c *client) listen(channel string) error {
	listener := pq.NewDialListener(pqDialer{c}, c.postgresSource(), time.Second, time.Second, nil)
	if err := listener.Listen(channel); err != nil {
		return err
	}
	for range listener.Notify {
	}
	return nil
}

// redis is a connection to Redis.
type redis struct{ *conn }

func (c *client) redis() redis { return redis{c.dial()} }

// resp writes a command in RESP 2, the protocol of Redis's clients.
func resp(words ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	return text
}

// write sends text.
func (r redis) write(text string) error {
	if r.err != nil {
		return r.err
	}
	_, err := io.WriteString(r.Conn, text)
	return err
}

// command sends a command and reads the answer.
func (r redis) command(line string) error {
	if err := r.write(resp(strings.Fields(line)...)); err != nil {
		return err
	}
	return readRESP(r.in)
}

// do runs a counted command.
func (r redis) do(line string) { r.t.real(func() error { return r.command(line) }) }

// ping runs a command without counting.
func (r redis) ping(line string) { r.t.spare(r.command(line)) }

// pipeline sends commands in one segment: one counted request.
func (r redis) pipeline(lines ...string) {
	r.t.real(func() error {
		var text string
		for _, line := range lines {
			text += resp(strings.Fields(line)...)
		}
		if err := r.write(text); err != nil {
			return err
		}
		for range lines {
			if err := readRESP(r.in); err != nil {
				return err
			}
		}
		return nil
	})
}

// readRESP reads an answer.
func readRESP(in *bufio.Reader) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	count, _ := strconv.Atoi(strings.TrimSpace(line[1:])) // of the types with a number
	switch line[0] {
	case '-':
		return errors.New(strings.TrimSpace(line))
	case '$':
		if count >= 0 {
			_, err = in.Discard(count + len("\r\n"))
		}
		return err
	case '*':
		for range count {
			if err := readRESP(in); err != nil {
				return err
			}
		}
	}
	return nil
}
