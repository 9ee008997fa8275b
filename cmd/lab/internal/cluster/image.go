package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	image "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/lameduck-init/lameduck/cmd/lab/manifest"
)

// release is the image of a release by the name in the manifests.
const release = "ghcr.io/lameduck-init/lameduck:1"

// The names of images that no manifest has.
const (
	web     = "web"
	loader  = "load"
	hookEnv = "E2E_LOAD"
)

// recipe describes an image from scratch.
type recipe struct {
	files  map[string]string // path in the image to program: a built one by name
	config image.Config
}

// recipes returns the images by the names in the manifests, with the paths and the
// STOPSIGNAL of HAProxy's and nginx's images.
func recipes() (map[string]recipe, error) {
	ours, err := manifest.Dockerfile(root + "/Dockerfile.example")
	if err != nil {
		return nil, err
	}
	path := "PATH=/usr/local/bin:/usr/sbin"
	haproxy := map[string]string{"usr/local/bin/docker-entrypoint.sh": "server", "usr/sbin/haproxy": "server"}
	withLameduck := map[string]string{"lameduck": "lameduck"}
	for to, from := range haproxy {
		withLameduck[to] = from
	}
	all := map[string]recipe{
		release: {map[string]string{"lameduck": "lameduck"}, image.Config{Entrypoint: []string{"/lameduck"}}},
		"nginxinc/nginx-unprivileged:1.29": {
			map[string]string{"docker-entrypoint.sh": "server", "usr/sbin/nginx": "server"},
			image.Config{Env: []string{path}, StopSignal: "SIGQUIT", Entrypoint: []string{"/docker-entrypoint.sh"}, Cmd: []string{"nginx", "-g", "daemon off;"}},
		},
		"haproxy:3.2": {haproxy, image.Config{Env: []string{path}, StopSignal: "SIGUSR1"}},
		"haproxy-lameduck:3.2": {
			withLameduck,
			image.Config{Env: append(ours.Env, path), StopSignal: "SIGUSR1", Entrypoint: ours.Entrypoint, Cmd: ours.Cmd},
		},
		"shop:1": {map[string]string{"shop": "server"}, image.Config{}},
		web:      {map[string]string{"web": "server", "shop": "server"}, image.Config{Entrypoint: []string{dies}}},
		loader:   {map[string]string{"load": "load"}, image.Config{Entrypoint: []string{"/load"}}},
	}
	if path, ok := tiniPath(); ok {
		all[web].files["tini"] = path
	}
	return all, nil
}

// loadImages builds the images, brings each into the cluster with the command E2E_LOAD,
// and returns the names in the cluster.
func loadImages(ctx context.Context, arch string) (map[string]string, error) {
	hook := os.Getenv(hookEnv)
	if hook == "" {
		return nil, errors.New(hookEnv + ` is not set: give a command that loads an image; for kind: kind load image-archive "$ARCHIVE"`)
	}
	dir, err := os.MkdirTemp("", "lab-cluster-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	all, err := recipes()
	if err != nil {
		return nil, err
	}
	if err := programs(ctx, dir, arch); err != nil {
		return nil, err
	}
	names := map[string]string{}
	for known, r := range all {
		archive := filepath.Join(dir, "image.tar")
		ref, err := r.write(archive, dir, known, arch)
		if err != nil {
			return nil, fmt.Errorf("cannot make the image %s: %w", known, err)
		}
		cmd := exec.CommandContext(ctx, "sh", "-c", hook)
		cmd.Env = append(os.Environ(), "ARCHIVE="+archive, "IMAGE="+ref)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot load the image %s: %s: %w\n%s", known, hook, err, out)
		}
		names[known] = ref
	}
	return names, nil
}

// programs builds the programs of the images.
func programs(ctx context.Context, dir, arch string) error {
	for _, words := range [][]string{
		{"make", "-s", "-C", root, "build", "OUT=" + dir + "/lameduck"},
		{"go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", dir + "/", "./internal/cluster/server", "./internal/cluster/load"},
	} {
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build: %s: %w\n%s", strings.Join(words, " "), err, out)
		}
	}
	return nil
}

// write writes the image's archive, and returns the name of the image. The tag depends on
// the content, so that no cluster uses an older image.
func (r recipe) write(archive, dir, known, arch string) (string, error) {
	layer, err := r.layer(dir)
	if err != nil {
		return "", err
	}
	made, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return "", err
	}
	file, err := made.ConfigFile()
	if err != nil {
		return "", err
	}
	file.OS, file.Architecture = "linux", arch
	file.Config = r.config
	made, err = mutate.ConfigFile(made, file)
	if err != nil {
		return "", err
	}
	digest, err := made.Digest()
	if err != nil {
		return "", err
	}
	prefix := "localhost"
	if p := os.Getenv("E2E_IMAGES"); p != "" {
		prefix = p
	}
	slug := strings.NewReplacer("/", "-", ":", "-").Replace(known)
	tag, err := name.NewTag(fmt.Sprintf("%s/lameduck-e2e-%s:%.12s", prefix, slug, digest.Hex))
	if err != nil {
		return "", err
	}
	return tag.Name(), tarball.WriteToFile(archive, tag, made)
}

func (r recipe) layer(dir string) (image.Layer, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, to := range slices.Sorted(maps.Keys(r.files)) {
		from := r.files[to]
		path := from
		if !filepath.IsAbs(from) {
			path = filepath.Join(dir, from)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: to, Mode: 0o755, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
}
