package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/lameduck-init/lameduck/docs/check/internal/podman"
)

const (
	// repository is the address of the project, as pages and the Go module have it.
	repository = "https://github.com/lameduck-init/lameduck"
	// version is the version in the pages' file names.
	version = "1.0.0"
	// packageName is goreleaser's name for a package without a name in the configuration.
	packageName = "{{ .PackageName }}_{{ .Version }}_{{ .Os }}_{{ .Arch }}{{ with .Arm }}v{{ . }}{{ end }}"
)

// releaser is the part of .goreleaser.yaml that names the files of a release.
type releaser struct {
	Builds []struct {
		ID                  string
		Goos, Goarch, Goarm []string
	}
	Archives []struct {
		IDs          []string
		Formats      []string
		NameTemplate string `json:"name_template"`
	}
	Packages []struct {
		IDs         []string
		PackageName string `json:"package_name"`
		Formats     []string
	} `json:"nfpms"`
	Checksum struct {
		NameTemplate string `json:"name_template"`
	}
	Signs []struct{ Artifacts, Signature string }
	SBOMs []struct{ Documents []string }
}

// target is a machine that a release is built for. The names are the names of goreleaser's
// templates.
type target struct{ Os, Arch, Arm, Version, PackageName, ArtifactName string }

// readReleaser reads .goreleaser.yaml, which must name the SBOMs: with goreleaser's own
// names those of armv6 and armv7 are one file.
func readReleaser(t *testing.T) (r releaser) {
	t.Helper()
	text, err := os.ReadFile(root + "/.goreleaser.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(r.SBOMs) != 1 || len(r.SBOMs[0].Documents) != 1 {
		t.Fatal(".goreleaser.yaml does not name the SBOMs")
	}
	return r
}

// targets returns the machines of the builds with the given IDs, and all without IDs.
func (r releaser) targets(ids []string) (list []target) {
	for _, b := range r.Builds {
		if len(ids) > 0 && !slices.Contains(ids, b.ID) {
			continue
		}
		for _, system := range b.Goos {
			for _, arch := range b.Goarch {
				variants := []string{""}
				if arch == "arm" {
					variants = b.Goarm
				}
				for _, arm := range variants {
					list = append(list, target{Os: system, Arch: arch, Arm: arm, Version: version})
				}
			}
		}
	}
	return list
}

// files returns the names of the files of a release.
func (r releaser) files(t *testing.T) (names []string) {
	t.Helper()
	for _, a := range r.Archives {
		for _, machine := range r.targets(a.IDs) {
			for _, format := range a.Formats {
				name := expand(t, a.NameTemplate, machine)
				if format != "binary" {
					names = append(names, name+"."+format)
					continue
				}
				names = append(names, name)
				machine.ArtifactName = name
				names = append(names, expand(t, r.SBOMs[0].Documents[0], machine))
			}
		}
	}
	for _, p := range r.Packages {
		for _, machine := range r.targets(p.IDs) {
			machine.PackageName = p.PackageName
			for _, format := range p.Formats {
				names = append(names, expand(t, packageName, machine)+"."+format)
			}
		}
	}
	sums := r.Checksum.NameTemplate
	names = append(names, sums)
	for _, s := range r.Signs {
		names = append(names, strings.ReplaceAll(s.Signature, "${artifact}", sums))
	}
	return names
}

func expand(t *testing.T, text string, machine target) string {
	t.Helper()
	var out strings.Builder
	parsed, err := template.New("name").Parse(text)
	if err == nil {
		err = parsed.Execute(&out, machine)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestReleaseFiles: no two files of a release have the same name, and pages name no other
// files.
func TestReleaseFiles(t *testing.T) {
	files := readReleaser(t).files(t)
	for i, name := range files {
		if slices.Contains(files[:i], name) {
			t.Errorf("a release has two files with the name %s", name)
		}
	}
	n := 0
	for _, p := range pages(t) {
		for _, name := range regexp.MustCompile(`\blameduck(-lint)?(-linux-|_\d)[a-z0-9._]*[a-z0-9]`).FindAllString(p.text, -1) {
			n++
			if !slices.Contains(files, name) {
				t.Errorf("%s: a release has no file %s", p.path, name)
			}
		}
	}
	if n < 5 {
		t.Errorf("the pages have only %d names of files", n)
	}
}

// TestPlaceholders: a page that runs an image with lameduck runs that of a release, or
// says how another is built.
func TestPlaceholders(t *testing.T) {
	build := func(name string) *regexp.Regexp {
		return regexp.MustCompile(`docker build .*-t ` + regexp.QuoteMeta(name) + `(\s|$)`)
	}
	for _, p := range pages(t) {
		if m := regexp.MustCompile(`[A-Z]+_WITH_[A-Z_]+|(?m)^COPY lameduck .*`).FindString(p.text); m != "" {
			t.Errorf("%s has a placeholder: %s", p.path, m)
		}
		for _, m := range regexp.MustCompile(`[a-z0-9]+-lameduck\b(:[0-9.]*[0-9])?`).FindAllString(p.text, -1) {
			example := exampleImage.MatchString(m) && strings.Contains(p.text, "Dockerfile.example)")
			if !example && !build(m).MatchString(p.text) {
				t.Errorf("%s does not say how to build %s", p.path, m)
			}
		}
	}
}

// installers are the checks of commands that get, check or install lameduck, by the
// beginning of the command. A check gets the remaining words.
var installers = map[string]func(t *testing.T, words []string){
	"curl -fLO":          isAddress,
	"sha256sum --check":  haveReleaseFile,
	"install -m":         haveReleaseFile,
	"dpkg -i":            haveReleaseFile,
	"rpm -i":             haveReleaseFile,
	"apk add":            haveReleaseFile,
	"cosign verify":      isSigned,
	"cosign verify-blob": isSigned,
	"gh attestation":     isAttested,
	"go install":         isPackage,
	"kind load":          haveReleaseImage,
	"minikube image":     haveReleaseImage,
	"kubectl patch":      isPatch,
}

// installs checks a command that gets, checks or installs lameduck, and reports whether
// words are such a command.
func installs(t *testing.T, words []string) bool {
	t.Helper()
	for len(words) > 0 && strings.HasPrefix(words[0], "CGO_ENABLED=") {
		words = words[1:]
	}
	if len(words) < 3 {
		return false
	}
	check := installers[words[0]+" "+words[1]]
	if check != nil {
		check(t, words[2:])
	}
	return check != nil
}

// raw is the address of the files of the main branch.
const raw = "https://raw.githubusercontent.com/lameduck-init/lameduck/main/"

// isAddress checks the address of a file of the checkout or of a release.
func isAddress(t *testing.T, words []string) {
	t.Helper()
	if path, ok := strings.CutPrefix(words[0], raw); ok {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Error(err)
		}
		return
	}
	folder, name := words[0][:strings.LastIndex(words[0], "/")], words[0][strings.LastIndex(words[0], "/")+1:]
	if folder != repository+"/releases/latest/download" && folder != repository+"/releases/download/v"+version {
		t.Errorf("%s is not a folder of releases", folder)
	}
	haveReleaseFile(t, []string{name})
}

// haveReleaseFile checks that one of words is a file of a release.
func haveReleaseFile(t *testing.T, words []string) {
	t.Helper()
	files := readReleaser(t).files(t)
	if !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(files, word) }) {
		t.Errorf("no file of a release in %q", words)
	}
}

// haveReleaseImage checks that the last of words is the image of a release.
func haveReleaseImage(t *testing.T, words []string) {
	t.Helper()
	if image := words[len(words)-1]; strings.TrimPrefix(image, "oci://") != podman.Release {
		t.Errorf("%s is not the image of a release", image)
	}
}

// workflow returns .github/workflows/release.yml.
func workflow(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(root + "/.github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// isSigned checks a call of cosign: the identity is that of the workflow that signs, and
// the signed thing and its signature are those of a release.
func isSigned(t *testing.T, words []string) {
	t.Helper()
	flags := map[string]string{}
	for _, word := range words[:len(words)-1] {
		name, value, _ := strings.Cut(word, "=")
		flags[name] = value
	}
	identity, err := regexp.Compile(flags["--certificate-identity-regexp"])
	if err != nil {
		t.Fatal(err)
	}
	if signer := repository + "/.github/workflows/release.yml@refs/tags/v" + version; !identity.MatchString(signer) {
		t.Errorf("%s does not match %s", identity, signer)
	}
	if forged := "https://github.com/other/lameduck/.github/workflows/release.yml@refs/tags/v" + version; identity.MatchString(forged) {
		t.Errorf("%s matches %s", identity, forged)
	}
	if flags["--certificate-oidc-issuer"] != "https://token.actions.githubusercontent.com" {
		t.Errorf("GitHub's workflows have another issuer than %s", flags["--certificate-oidc-issuer"])
	}
	if !strings.Contains(workflow(t), "id-token: write") {
		t.Error("the workflow has no identity")
	}
	if bundle := flags["--bundle"]; bundle != "" {
		haveReleaseFile(t, []string{bundle})
		haveReleaseFile(t, words[len(words)-1:])
		return
	}
	haveReleaseImage(t, words)
}

// isAttested checks a call of gh attestation verify: the workflow attests the sums and the
// digests.
func isAttested(t *testing.T, words []string) {
	t.Helper()
	if words[0] != "verify" || words[len(words)-1] != "--repo="+strings.TrimPrefix(repository, "https://github.com/") {
		t.Errorf("no verification in %q", words)
	}
	attested := "subject-checksums: dist/SHA256SUMS"
	if strings.HasPrefix(words[1], "oci://") {
		attested = "subject-checksums: dist/digests.txt"
		haveReleaseImage(t, words[1:2])
	} else {
		haveReleaseFile(t, words[1:2])
	}
	if !strings.Contains(workflow(t), attested) {
		t.Errorf("the workflow has no %s", attested)
	}
}

// isPackage checks that go install names a program of the checkout.
func isPackage(t *testing.T, words []string) {
	t.Helper()
	path, _, _ := strings.Cut(words[0], "@")
	if _, err := os.Stat(root + strings.TrimPrefix("https://"+path, repository) + "/main.go"); err != nil {
		t.Errorf("%s: %v", words[0], err)
	}
}

// isPatch checks that the file of kubectl patch is the patch for a hold, by its path in
// the checkout or as curl names the file. The manifests' tests merge the file.
func isPatch(t *testing.T, words []string) {
	t.Helper()
	const file = "docs/examples/kubernetes/patch/hold.yaml"
	last := words[len(words)-1]
	if words[len(words)-2] != "--patch-file" || last != file && last != filepath.Base(file) {
		t.Errorf("%q does not apply %s", words, file)
	}
}
