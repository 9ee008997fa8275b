package plays

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed kept.txt
var kept string

// AtLull and CloseIdle are contenders of lab kept: CloseIdle is compared with AtLull.
const (
	AtLull    = "--until=quiet --quiet-for=1s"
	CloseIdle = "--until=quiet --close-idle"
)

// contenders are the options of which each row of kept.txt is played with each. Holds until
// settled and quiet are shorter than by default, which changes no loss.
var contenders = []string{"sleep=8s", "--until=settled --quiet-for=1s", AtLull, CloseIdle}

// Kept returns the cases of lab kept: the rows of kept.txt with each of their times, and with each
// of the contenders.
func Kept() (cases []Row) {
	limits, sessions := Limits(), ReadSessions()
	for _, columns := range Rows(kept) {
		for times := range strings.FieldsSeq(columns[4]) {
			work, rate, _ := strings.Cut(times, "~")
			clients := strings.NewReplacer("WORK", work, "RATE", rate).Replace(columns[2])
			for _, contender := range contenders {
				name := fmt.Sprintf("%s | %s | %s", columns[0], work, contender)
				options := columns[3] + " precise lag=1s nobody --preset=auto " + contender
				cases = append(cases, parseRow([]string{name, columns[1], clients, options}, limits, sessions)...)
			}
		}
	}
	return cases
}
