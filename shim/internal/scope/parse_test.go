package scope

import (
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

func TestLocate(t *testing.T) {
	for _, c := range []struct{ root, path, want string }{
		{"/", "/", "/cg"},
		{"/", "/a/b", "/cg/a/b"},
		{"/a", "/a/b", "/cg/b"},
		{"/a", "/a", "/cg"},
		{"/a", "/ab", ""},
		{"/a", "/", ""},
		{"/..", "/", ""},
	} {
		got, ok := locate(procfs.Mount{Root: c.root, Point: "/cg"}, c.path)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%+v: %q, %v", c, got, ok)
		}
	}
}

func TestSocketInode(t *testing.T) {
	if n, ok := SocketInode([]byte("socket:[4294967295]")); n != 1<<32-1 || !ok {
		t.Error(n, ok)
	}
	for _, target := range []string{"", "pipe:[5]", "socket:[5", "socket:5]", "socket:[]", "socket:[4294967296]", "/tmp/socket:[5]"} {
		if n, ok := SocketInode([]byte(target)); ok {
			t.Errorf("%q: %d", target, n)
		}
	}
}
