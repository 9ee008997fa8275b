package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Image is the part of an image that a Dockerfile sets.
type Image struct{ Env, Entrypoint, Cmd []string }

// Dockerfile reads the Dockerfile at path.
func Dockerfile(path string) (*Image, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	image := &Image{}
	for _, m := range regexp.MustCompile(`(?m)^(ENV|ENTRYPOINT|CMD) (.*)$`).FindAllStringSubmatch(string(text), -1) {
		switch m[1] {
		case "ENV":
			image.Env = append(image.Env, strings.Fields(m[2])...)
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(m[2]), &image.Entrypoint)
		case "CMD":
			err = json.Unmarshal([]byte(m[2]), &image.Cmd)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", m[0], err)
		}
	}
	if len(image.Env) < 2 || len(image.Entrypoint) == 0 || len(image.Cmd) < 3 {
		return nil, fmt.Errorf("cannot read %s: ENV, ENTRYPOINT or CMD is missing: %+v", path, image)
	}
	return image, nil
}
