package stop_test

import (
	"os"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// drains is an nginx that is drained once there is DIR/drained, and writes what it was asked.
const drains = `
user root;
pid DIR/pid;
error_log stderr error;
daemon off;
events {}
http {
	log_format asked "$request_method $request_uri $status";
	access_log DIR/asked asked;
	client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi;
	uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
	server {
		listen ADDR;
		listen unix:DIR/sock;
		location /drain { return 204; }
		location /drained { if (-f DIR/drained) { return 200; } return 503; }
	}
}
`

// TestURLs: nginx is sent the request of --on-stop once, and asked for --wait-url once a second until
// it answers 200. These connections come to the port that counts, and neither prolong the silence nor
// are reported, whatever the source of samples. They take no new thread.
func TestURLs(t *testing.T) {
	box.Needs(t, "nginx")
	box.Each(t, `
		case       | faults     | on-stop                         | wait-url                | asked | warning
		TCP        |            | http://ADDR/drain?graceful      | http://ADDR/drained     | POST /drain?graceful 204 |
		a socket   |            | GET unix:DIR/sock/drain?x       | unix:DIR/sock/drained   | GET /drain?x 204 |
		no netlink | no-netlink | http://ADDR/drain               | http://ADDR/drained     | POST /drain 204 | /proc/net
		a failure  |            | http://ADDR/none                | http://ADDR/drained?y=1 | POST /none 404 | POST http://ADDR/none: the answer is 404
		nobody     |            | http://ADDR/drain               | http://127.0.0.1:1/     | POST /drain 204 |
	`, func(t *testing.T, c box.Row) {
		dir := testutil.Must(os.MkdirTemp("", "nginx"))
		t.Cleanup(func() { os.RemoveAll(dir) })
		fill := strings.NewReplacer("DIR", dir, "ADDR", "127.0.0.1:8080").Replace
		testutil.WriteFile(t, dir+"/conf", fill(drains))
		s := box.Setup{Faults: c["faults"], Network: box.NewNetwork(t)}
		b := s.Boot(t, fill("--until=quiet --quiet-for=1.5 --grace-period=30 --preset=nginx --on-stop='"+c["on-stop"]+
			"' --wait-url="+c["wait-url"]), "nginx", "-c", dir+"/conf")
		testutil.Eventually(t, "nginx serves", func() bool {
			_, err := os.Stat(dir + "/pid")
			return err == nil
		})
		threads := box.Status(b.Pid(), "Threads")
		asked := func() string {
			text, _ := os.ReadFile(dir + "/asked")
			return string(text)
		}
		b.Play("TERM / err holding")
		if c["case"] != "nobody" {
			testutil.Eventually(t, "nginx is asked", func() bool { return strings.Count(asked(), "GET /drained") >= 3 })
			if now := box.Status(b.Pid(), "Threads"); now != threads {
				t.Errorf("%s threads, before %s", now, threads)
			}
			b.WantHolding("nginx is not drained")
			testutil.WriteFile(t, dir+"/drained", "")
		}
		b.Play("exits 0 / ended quiet / warns " + fill(c["warning"]))
		if n := strings.Count(asked(), c["asked"]+"\n"); n != 1 || strings.Contains(asked(), "/drained") == (c["case"] == "nobody") {
			t.Errorf("nginx was asked %s", asked())
		}
		if r := b.Report(); r.Accepted > 0 {
			t.Errorf("report %+v", r)
		}
	})
}
