package pages

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// dockerfile checks the command line of each image in text. A FROM begins an image.
func dockerfile(t *testing.T, text string) {
	var c call
	var entrypoint, command []string
	image := func() {
		c.argv = append(entrypoint, command...)
		c.check(t)
		c = call{}
		entrypoint, command = nil, nil
	}
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch instruction {
		case "FROM":
			image()
		case "ENV":
			c.env = append(c.env, fields(t, rest)...)
		case "ENTRYPOINT":
			entrypoint = execForm(t, rest)
		case "CMD":
			command = execForm(t, rest)
		case "ADD", "COPY", "RUN", "WORKDIR", "#", "":
		default:
			t.Errorf("no rule for %s", instruction)
		}
	}
	image()
}

// TestExample: the Dockerfile that the README links to.
func TestExample(t *testing.T) {
	text, err := os.ReadFile(root + "/Dockerfile.example")
	if err != nil {
		t.Fatal(err)
	}
	dockerfile(t, string(text))
}

// execForm returns a list of words in JSON. The shell form, an error here, would put a
// shell before lameduck.
func execForm(t *testing.T, text string) (list []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return list
}
