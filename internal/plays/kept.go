package plays

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed kept.txt
var kept string

// Contenders of lab kept: CloseIdle, or Goaway for clients of HTTP/2 without TLS, is compared with AtLull.
// CloseIdle finds the servers of gRPC by itself.
const (
	AtLull    = "--until=quiet --quiet-for=1s"
	CloseIdle = "--until=quiet --close-idle"
	Goaway    = "--until=quiet --goaway=8080"
)

// contenders returns the options of which a row of kept.txt is played with each. Holds until
// settled and quiet are shorter than by default, which changes no loss.
func contenders(clients string) []string {
	asks := CloseIdle
	if strings.Contains(clients, " h2c:") { // some of these servers speak HTTP/1, too
		asks = Goaway
	}
	return []string{"sleep=8s", "--until=settled --quiet-for=1s", AtLull, asks}
}

// Kept returns the cases of lab kept: the rows of kept.txt with each of their times, and with each
// of the contenders.
func Kept() (cases []Row) {
	limits, sessions := Limits(), ReadSessions()
	for _, columns := range Rows(kept) {
		for times := range strings.FieldsSeq(columns[4]) {
			work, rate, _ := strings.Cut(times, "~")
			clients := strings.NewReplacer("WORK", work, "RATE", rate).Replace(columns[2])
			for _, contender := range contenders(clients) {
				name := fmt.Sprintf("%s | %s | %s", columns[0], work, contender)
				options := columns[3] + " precise lag=1s nobody --preset=auto " + contender
				cases = append(cases, parseRow([]string{name, columns[1], clients, options}, limits, sessions)...)
			}
		}
	}
	return cases
}
