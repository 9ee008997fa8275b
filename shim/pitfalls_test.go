package shim

import (
	"strings"
	"testing"
)

// pitfalls are the cases in which waiting for silence is known to go wrong, each
// with the tests that it does not here: ROOM/TEST/CASE, without a room e2e.
var pitfalls = map[string][]string{
	"low traffic, still listed":           {"/TestUntilFloorEnds", "/TestUntilNoTCP/Unix, busy", "/TestUntilWorker/its floor"},
	"readiness probes":                    {"/TestUntilProbes/every 1 s", "/TestUntilProbes/every 5 s", "/TestUntilProbes/every 10 s", "/TestUntilProbes/every 1 s, counted", "traffic/TestVerdicts/probes every 10 s"},
	"ignoring the node's address":         {"/TestUntilProbes/every 1 s", "traffic/TestVerdicts/probes and requests of one peer", "traffic/TestVerdicts/requests that look like the probes"},
	"a balancer's health checks":          {"/TestUntilPeers/named", "/TestUntilPeers/not that", "traffic/TestVerdicts/ignored peer"},
	"our own loopback calls":              {"/TestUntilOutbound/itself", "/TestUntilItself/by exec", "observe/TestSelf", "scope/TestOwns"},
	"metrics scrapes":                     {"/TestUntilPorts/ignored", "/TestUntilPorts/not counted", "traffic/TestVerdicts/ignored port"},
	"idle keep-alive pools":               {"/TestUntilTLS/idle pool", "/TestUntilIdle", "traffic/TestVerdicts/idle keep-alive, quiet"},
	"a connection reused as it is closed": {"/TestUntilFloorEnds", "/TestUntilServers"},
	"slow, silent requests":               {"/TestUntilTLS/slow request", "/TestUntilTLS/slow first request", "/TestUntilSlow", "traffic/TestVerdicts/slow request on a kept-alive connection", "traffic/TestClassify"},
	"HTTP/2, gRPC":                        {"/TestUntilHTTP2/a stream in flight", "/TestUntilHTTP2/a last WINDOW_UPDATE", "/TestUntilPinged/seldom", "/TestUntilPinged/often", "traffic/TestVerdicts/HTTP/2: a last WINDOW_UPDATE"},
	"WebSocket, SSE, MQTT":                {"/TestUntilTalking/settled", "/TestUntilTalking/drained, to the ceiling", "traffic/TestVerdicts/a busy WebSocket, quiet"},
	"downloads, uploads":                  {"/TestUntilDownload/taken slowly", "/TestUntilReceives", "traffic/TestVerdicts/a download: sent only"},
	"half-closed":                         {"/TestUntilHalfClosed/leaked", "/TestUntilHalfClosed/unread", "traffic/TestVerdicts/half-closed, nothing queued", "traffic/TestVerdicts/unsent bytes of an orphan"},
	"TIME_WAIT":                           {"/TestUntilTimeWait", "traffic/TestVerdicts/TIME_WAIT"},
	"dead peers":                          {"/TestUntilDownload/not taken", "/TestUntilIdle", "traffic/TestVerdicts/slow, beyond MaxSilence"},
	"half-open, accept queue":             {"/TestUntilQueued", "traffic/TestVerdicts/a handshake", "traffic/TestVerdicts/waiting to be accepted", "sockdiag/TestSynRecv"},
	"outbound connections":                {"/TestUntilOutbound/elsewhere", "/TestUntilPod", "/TestUntilProxy"},
	"listeners closed first":              {"/TestUntilListenerClosed"},
	"shorter than the poll":               {"/TestUntilQuiet", "/TestUntilDegraded/a netlink group", "sockdiag/TestEvents", "sockdiag/TestLost", "traffic/TestVerdicts/requests until a while after, by events"},
	"a mesh's sidecar":                    {"/TestUntilSidecar", "/TestUntilProxy"},
	"an ambient mesh":                     {"/TestUntilPod/cgroup", "/TestUntilSidecar"},
	"other containers of the pod":         {"/TestUntilPod/descriptors", "/TestUntilPod/cgroup", "/TestUntilWorker/at once"},
	"the host's network":                  {"/TestUntilPod", "/TestUntilUnreadable/ports given", "/TestUntilPorts/not counted"},
	"control groups: version 1, nested":   {"/TestUntilPod/descriptors", "/TestUntilNested/a server", "scope/TestDecide", "scope/TestGroups"},
	"another user's command":              {"/TestUntilUnreadable/its own", "/TestUntilUnreadable/a neighbor's", "scope/TestNeverNone", "scope/TestUnreadable"},
	"IPv4 as if IPv6":                     {"/TestUntilFamilies/IPv4, as if IPv6", "/TestUntilPeers/named"},
	"UDP, QUIC, DNS":                      {"/TestUntilNoTCP/UDP", "/TestUntilNoTCP/UDP with a ceiling", "/TestUntilNoTCP/UDP beside TCP"},
	"Unix sockets":                        {"/TestUntilNoTCP/Unix", "/TestUntilNoTCP/Unix beside TCP"},
	"a listener handed over":              {"/TestUntilInherited"},
	"gVisor, Kata, SELinux":               {"/TestUntilDegraded/netlink", "/TestUntilDegraded//proc/net nor netlink", "/TestUntilUnsure//proc/net", "traffic/TestVerdicts/no tcp_info: idle"},
	"TERM from a liveness restart":        {"/TestUntilStuck/hung", "/TestUntilStuck/others are served", "traffic/TestStuck"},
	"starvation":                          {"/TestUntilStarved", "/TestStoppedInHold", "traffic/TestVerdicts/incomplete for a while"},
}

// TestPitfalls: the tests in the table are there.
func TestPitfalls(t *testing.T) {
	known := testsThere(t)
	for row, tests := range pitfalls {
		for _, path := range tests {
			if strings.HasPrefix(path, "/") {
				path = "e2e" + path
			}
			if !known.has(path) {
				t.Errorf("%s: there is no test %q", row, path)
			}
		}
	}
}
