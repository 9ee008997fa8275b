package main

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	apps "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

func TestMain(m *testing.M) {
	os.Chdir("../..") // cmd/lab, where the program runs
	os.Exit(m.Run())
}

// TestSkips: without a cluster the program skips, and does not fail.
func TestSkips(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	path := filepath.Join(t.TempDir(), "config")
	config := api.Config{
		Clusters:       map[string]*api.Cluster{"gone": {Server: "http://" + listener.Addr().String()}},
		Contexts:       map[string]*api.Context{"gone": {Cluster: "gone"}},
		CurrentContext: "gone",
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{"": "names no cluster", path: "does not answer"} {
		t.Setenv("KUBECONFIG", at)
		var reason skipped
		if err := run(nil); !errors.As(err, &reason) || !strings.Contains(string(reason), want) {
			t.Errorf("KUBECONFIG=%s: %v", at, err)
		}
	}
}

// TestRows: each image of the rows is built, and each manifest has a row.
func TestRows(t *testing.T) {
	all, err := recipes()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{images: map[string]string{}}
	for known := range all {
		c.images[known] = "built"
	}
	names := map[string]bool{}
	for _, r := range rows() {
		names[r.name] = true
		list, err := r.objects()
		if err != nil {
			t.Fatal(err)
		}
		deployments := 0
		for _, object := range list {
			if d, ok := object.(*apps.Deployment); ok {
				deployments++
				if err := c.renamed(&d.Spec.Template.Spec); err != nil {
					t.Errorf("%s: %v", r.name, err)
				}
			}
		}
		if deployments != 1 {
			t.Errorf("%s has %d Deployments", r.name, deployments)
		}
	}
	paths, _ := filepath.Glob(examples + "*.yaml")
	if len(paths) < 5 {
		t.Errorf("only %d manifests", len(paths))
	}
	for _, path := range paths {
		if !names[filepath.Base(path)] {
			t.Errorf("%s has no row", path)
		}
	}
	text, err := os.ReadFile(examples + "fleet/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(c.policyText(string(text)), "image: 'built'") {
		t.Error("the policy has no image to replace")
	}
}

// TestImage: an archive has the program and the configuration, and another program gives
// another name.
func TestImage(t *testing.T) {
	all, err := recipes()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "image.tar")
	var refs [2]string
	for i, content := range []string{"one", "two"} {
		if err := os.WriteFile(dir+"/server", []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		refs[i], err = all["nginxinc/nginx-unprivileged:1.29"].write(archive, dir, "nginx", "arm64")
		if err != nil {
			t.Fatal(err)
		}
	}
	made, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := made.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if file.Architecture != "arm64" || file.Config.StopSignal != "SIGQUIT" || file.Config.Entrypoint[0] != "/docker-entrypoint.sh" || len(file.RootFS.DiffIDs) != 1 {
		t.Errorf("%+v", file)
	}
	if refs[0] == refs[1] || !strings.HasPrefix(refs[0], "localhost/lameduck-e2e-nginx:") {
		t.Errorf("names %q", refs)
	}
}

// TestPrograms: the image web has the programs of the rows, and rows under lameduck keep the
// init container that installs lameduck.
func TestPrograms(t *testing.T) {
	all, err := recipes()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows()[:8] {
		list, err := r.objects()
		if err != nil {
			t.Fatal(err)
		}
		spec := list[0].(*apps.Deployment).Spec.Template.Spec
		c := spec.Containers[0]
		words := append(c.Command, c.Args...)
		program := words[len(words)-1]
		if all[web].files[strings.TrimPrefix(program, "/")] != "server" || r.dies != (program == dies) {
			t.Errorf("%s: command %q", r.name, words)
		}
		if r.ours != (len(spec.InitContainers) == 1) || r.ours != strings.HasSuffix(words[0], "/lameduck") || r.ours && words[1]+", " != strings.SplitAfter(r.name, ", ")[0] {
			t.Errorf("%s: %d init containers, command %q", r.name, len(spec.InitContainers), words)
		}
		if r.fixed != (c.Lifecycle != nil && r.dies) {
			t.Errorf("%s: preStop %v", r.name, c.Lifecycle)
		}
	}
}

// TestJudge: a broken promise is found.
func TestJudge(t *testing.T) {
	good := []stop{{messages: []string{"", "TERM: nothing in flight: held 10.0 s (quiet), sent TERM, exited 0 at +10.1 s of 60 s; 3 new connections"}}}
	ceiling := []stop{{messages: []string{"TERM: 1 request in flight, 24 connections in use: held 49.0 s (ceiling), sent TERM, exited 0 at +49.1 s of 60 s; 0 new connections"}}}
	lost, fine := failures(1), failures(0)
	for name, c := range map[string]struct {
		row  row
		want string
	}{
		"good":             {row{rowKind: rowKind{ours: true}, stops: good, tally: fine}, ""},
		"loses":            {row{rowKind: rowKind{ours: true}, stops: good, tally: lost}, "1 requests failed: 1 reset"},
		"loses, kept":      {row{rowKind: rowKind{ours: true, kept: true}, stops: good, tally: lost}, "1 requests failed: 1 reset"},
		"loses, dies":      {row{rowKind: rowKind{ours: true, dies: true}, stops: good, tally: lost}, "1 requests failed: 1 reset"},
		"reports no hold":  {row{rowKind: rowKind{ours: true}, stops: []stop{{messages: []string{"TERM: holding"}}}, tally: fine}, "no hold"},
		"never stopped":    {row{rowKind: rowKind{ours: true}, tally: fine}, "nothing was stopped"},
		"at the ceiling":   {row{rowKind: rowKind{ours: true, quiet: true, kept: true}, stops: ceiling, tally: fine}, "to the ceiling"},
		"new, ceiling":     {row{rowKind: rowKind{ours: true, quiet: true}, stops: ceiling, tally: fine}, ""},
		"blind load":       {row{rowKind: rowKind{loses: true}, stops: good, tally: fine}, "does not see"},
		"stood still":      {row{stops: good, tally: load.Tally{LateMS: 5000}}, "stood still"},
		"another's losses": {row{stops: good, tally: lost}, ""},
		"skipped":          {row{rowKind: rowKind{ours: true}, reason: "too old"}, ""},
	} {
		if err := judge(io.Discard, []row{c.row}); (err != nil) != (c.want != "") || !strings.Contains(c.row.broken(), c.want) {
			t.Errorf("%s: %v: %s", name, err, c.row.broken())
		}
	}
}

// failures is a tally with so many failed requests.
func failures(n int) load.Tally {
	return load.Tally{Kinds: map[load.Kind]int{load.Answered: 500, load.Reset: n}}
}

// TestTenth: before a server that TERM kills, and with kept connections, lameduck may lose
// a tenth of what the fixed delay loses, and few losses decide nothing.
func TestTenth(t *testing.T) {
	stops := []stop{{messages: []string{"TERM: 1 request in flight, 24 connections in use: held 20.0 s (kept), sent TERM, exited 0 at +20.1 s of 60 s; 0 new connections"}}}
	for _, c := range []struct {
		fixed, ours int
		want        string // BROKEN, undecided, or empty
	}{
		{12, 0, ""}, {12, 1, ""}, {12, 2, "undecided"}, {12, 4, "undecided"}, {12, 5, "BROKEN"},
		{100, 10, ""}, {100, 11, "undecided"}, {100, 16, "undecided"}, {100, 17, "BROKEN"},
		{9, 0, "undecided"}, {9, 2, "undecided"}, {9, 4, "BROKEN"}, {0, 0, "undecided"}, {0, 2, "BROKEN"},
	} {
		var out strings.Builder
		list := []row{
			{name: "new", rowKind: rowKind{dies: true, fixed: true}, stops: stops, tally: failures(1000)},
			{name: "sleep", rowKind: rowKind{dies: true, fixed: true, kept: true}, stops: stops, tally: failures(c.fixed)},
			{name: "ours", rowKind: rowKind{ours: true, dies: true, quiet: true, kept: true}, stops: stops, tally: failures(c.ours)},
		}
		err := judge(&out, list)
		word, _, _ := strings.Cut(out.String(), " ")
		if word != c.want || (err != nil) != (c.want == "BROKEN") {
			t.Errorf("%d lost, %d under the fixed delay: %v: %s", c.ours, c.fixed, err, out.String())
		}
	}
	var out strings.Builder
	alone := []row{{name: "ours", rowKind: rowKind{ours: true, dies: true, kept: true}, stops: stops, tally: failures(3)}}
	if err := judge(&out, alone); err != nil || !strings.Contains(out.String(), "no fixed delay") {
		t.Errorf("without a fixed delay: %v: %s", err, out.String())
	}
}

// TestAtLeast: five or more heads in ten throws of a coin, and the certain cases.
func TestAtLeast(t *testing.T) {
	for _, c := range []struct {
		k, n    int
		p, want float64
	}{{5, 10, 0.5, 638.0 / 1024}, {0, 10, 0.5, 1}, {10, 10, 0.5, 1.0 / 1024}, {0, 0, 0.5, 1}, {1, 1, 0.25, 0.25}} {
		if got := atLeast(c.k, c.n, c.p); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d of %d: %v, want %v", c.k, c.n, got, c.want)
		}
	}
}

// TestTable: a row has the losses of each rollout, and the number of holds by their ends.
func TestTable(t *testing.T) {
	ends := []stop{
		{took: 20 * time.Second, messages: []string{"TERM: 1 request in flight, 24 connections in use: held 20.2 s (kept), sent TERM; 0 new connections"}},
		{took: 21 * time.Second, messages: []string{"TERM: nothing in flight, 24 connections in use: held 20.9 s (kept, at a lull), sent TERM; 0 new connections"}},
		{took: 30 * time.Second, messages: []string{"TERM: the traffic could not be seen: held 29.9 s (ceiling), sent TERM"}},
	}
	for i, want := range []string{"held 20.2 s (kept), 1 request in flight, 24 connections in use", "held 20.9 s (kept, at a lull), nothing in flight, 24 connections in use", "held 29.9 s (ceiling), the traffic could not be seen"} {
		if got := ends[i].holds(); got != want {
			t.Errorf("holds %q, want %q", got, want)
		}
	}
	var out strings.Builder
	printTable(&out, []row{{name: untilQuiet, rowKind: rowKind{kept: true}, failed: []int{0, 2, 1}, tally: failures(3), stops: ends}})
	line := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"kept --until=quiet 0 2 1 503 0 21.0 s 30.0 s", "1 ceiling, 2 kept, 1 with nothing in flight; 3 reset"} {
		if !strings.Contains(line, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
