package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// containerUntil: in a pod, as the user nobody and with podman's seccomp profile,
// another container's requests prolong the hold until the last. Connections between
// other containers do not count.
func containerUntil(t *testing.T, y *podman) {
	words := strings.Fields("pod create --name until --network none --share net --infra-name until-infra --infra-command /pause --infra-image " + imagePrefix + "pause")
	if out, err := y.call(t, words...); err != nil {
		t.Fatalf("podman pod create: %v\n%s", err, out)
	}
	asNobody := []string{"--pod", "until", "--user=65534:65534", "--cap-drop=ALL", "--security-opt=no-new-privileges"}
	begin := func(words ...string) *container {
		c := y.run(t, append(asNobody, words...)...)
		c.out.wait(t, "ready")
		return c
	}
	server := begin(imagePrefix+"lameduck", "--log-format=json", "--until=quiet", "--delay=0", "--quiet-for=1", "--grace-period=30", "--", "/helper", "helper", "app", "[::]:8080")
	client := begin(imagePrefix+"bare", "/helper", "helper", "app", "[::]:9090")
	busy := begin(imagePrefix+"bare", "/helper", "helper", "app")
	busy.sendLine("call 127.0.0.1:9090")
	busy.out.wait(t, "did call")
	for _, want := range []string{"\nSeccomp:\t2\n", "\nUid:\t65534\t", "\nCapEff:\t0000000000000000\n"} {
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.pid())); !strings.Contains(string(text), want) {
			t.Errorf("status of lameduck:\n%s\nwant %q", text, want)
		}
	}
	done := server.stop()
	server.err.wait(t, "until quiet")
	repeatFor(3*quiet1s, 250*time.Millisecond, func() { client.sendLine("short 127.0.0.1:8080") })
	(&serverBox{box: server.box}).wantHoldSince(time.Now(), quiet1s-350*time.Millisecond, "quiet")
	done()
	r := parseReport(t, server.report())
	if own := []string{"cgroup", "descriptors"}; r.Observer == nil || *r.Observer != "sock_diag" || r.Scope == nil || !slices.Contains(own, *r.Scope) {
		t.Errorf("report: %s\nwant observer sock_diag, and a scope of %v", server.report(), own)
	}
}
