package main

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// TestJudge: a broken promise is found.
func TestJudge(t *testing.T) {
	good := []stop{{messages: []string{"", "TERM: held 10.0 s (quiet); 3 new connections"}}}
	lost := load.Tally{Kinds: map[load.Kind]int{load.Answered: 5, load.Reset: 1}}
	fine := load.Tally{Kinds: map[load.Kind]int{load.Answered: 5}}
	for name, c := range map[string]struct {
		row  row
		want string
	}{
		"good":             {row{rowKind: rowKind{ours: true}, stops: good, tally: fine}, ""},
		"loses":            {row{rowKind: rowKind{ours: true}, stops: good, tally: lost}, "1 requests failed: 1 reset"},
		"reports no hold":  {row{rowKind: rowKind{ours: true}, stops: []stop{{messages: []string{"TERM: holding"}}}, tally: fine}, "no hold"},
		"never stopped":    {row{rowKind: rowKind{ours: true}, tally: fine}, "nothing was stopped"},
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
