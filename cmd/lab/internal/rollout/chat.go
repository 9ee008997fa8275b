package rollout

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// chatters keep a WebSocket each, and send a message every pause.
const (
	chatters = 8
	pause    = 400 * time.Millisecond
)

// chat is the load of long-lived connections. A connection counts as a request when
// opened, and so does each message. A connection that ends is lost, message included.
func (l *sender) chat(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range chatters {
		at := l.began.Add(l.scale.of(pause) * time.Duration(i) / chatters)
		all.Go(func() { l.chatter(ctx, at) })
	}
}

func (l *sender) chatter(ctx context.Context, at time.Time) {
	var conn *websocket.Conn
	for ; l.sleep(ctx, at); at = at.Add(l.scale.of(pause)) {
		began := time.Now()
		if conn == nil {
			var k load.Kind
			conn, k = l.dial()
			l.add(began, k, 0)
			continue
		}
		k := say(conn)
		if k != load.Answered {
			conn.CloseNow()
			conn, k = nil, lost
		}
		l.add(began, k, 0)
	}
	if conn != nil {
		conn.CloseNow()
	}
}

func (l *sender) dial() (*websocket.Conn, load.Kind) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	conn, answer, err := websocket.Dial(ctx, "ws://"+l.addr, &websocket.DialOptions{HTTPClient: client})
	status := 0
	if answer != nil {
		status = answer.StatusCode
	}
	return conn, load.KindOf(status, err)
}

func say(conn *websocket.Conn) load.Kind {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	err := conn.Write(ctx, websocket.MessageText, []byte("quack"))
	if err == nil {
		_, _, err = conn.Read(ctx)
	}
	return load.KindOf(0, err)
}
