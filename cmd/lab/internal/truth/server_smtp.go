package truth

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"time"
)

// Mail servers speak first. The slow server greets after 9 s, as a defense against senders
// of spam.
var (
	smtp     = &server{command: role("smtp", "0s")}
	smtpSlow = &server{command: role("smtp", "9s")}
)

// serveSMTP takes mail: RFC 5321 as far as the cases go. The answer to the end of a mail
// with the last line "scan D" takes D.
func serveSMTP(greetAfter time.Duration) error {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			time.Sleep(greetAfter)
			talkSMTP(conn)
		}()
	}
}

func talkSMTP(conn net.Conn) {
	in := bufio.NewScanner(conn)
	fmt.Fprint(conn, "220 mail.example.org ESMTP\r\n")
	for in.Scan() {
		switch verb, _, _ := strings.Cut(in.Text(), " "); verb {
		case "EHLO":
			fmt.Fprint(conn, "250-mail.example.org\r\n250-8BITMIME\r\n250 SIZE 10240000\r\n")
		case "DATA":
			fmt.Fprint(conn, "354 End data with <CR><LF>.<CR><LF>\r\n")
			readMail(in)
			fmt.Fprint(conn, "250 2.0.0 Ok: queued as 4F2A\r\n")
		case "QUIT":
			fmt.Fprint(conn, "221 2.0.0 Bye\r\n")
			return
		default:
			fmt.Fprint(conn, "250 2.0.0 Ok\r\n")
		}
	}
}

func readMail(in *bufio.Scanner) {
	scan := time.Duration(0)
	for in.Scan() && in.Text() != "." {
		if word, found := strings.CutPrefix(in.Text(), "scan "); found {
			scan = duration(word)
		}
	}
	time.Sleep(scan)
}

// mail is a client's session.
type mail struct{ *conn }

// mail connects and reads the greeting.
func (c *client) mail() mail {
	m := mail{c.dial()}
	m.receive()
	return m
}

// say sends a command and reads the answer. All lines of an answer but the last have a dash
// after the code.
func (m mail) say(line string) error {
	if err := m.send(line + "\r"); err != nil {
		return err
	}
	return m.hear()
}

func (m mail) hear() error {
	for {
		line, err := m.in.ReadString('\n')
		if err != nil {
			return err
		}
		if len(line) > 3 && line[3] != '-' {
			return nil
		}
	}
}

// begin opens a mail, up to the text.
func (m mail) begin() error {
	for _, line := range []string{"EHLO client.example.org", "MAIL FROM:<a@example.org>", "RCPT TO:<b@example.org>", "DATA"} {
		if err := m.say(line); err != nil {
			return err
		}
	}
	return nil
}

// deliver sends a mail in count pieces, one each period. The server
// answers after scan.
func (m mail) deliver(count int, period, scan time.Duration) error {
	if m.err != nil {
		return m.err
	}
	if err := m.begin(); err != nil {
		return err
	}
	for range count {
		if err := m.send(strings.Repeat("text ", 100) + "\r"); err != nil {
			return err
		}
		m.t.sleep(period)
	}
	return m.say(fmt.Sprintf("scan %v\r\n.", scan))
}
