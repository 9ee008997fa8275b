package scope

import (
	"slices"
	"testing"
)

func TestGroupPath(t *testing.T) {
	for text, want := range map[string]string{
		"0::/\n":                            "/",
		"12:pids:/a\n0::/kubepods/pod1/c\n": "/kubepods/pod1/c",
		"1:name=systemd:/a\n":               "",
		"":                                  "",
		"0::/a:b":                           "/a:b",
	} {
		if got := groupPath(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

const mountinfo = `22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw,nosuid shared:5 - proc proc rw,hidepid=invisible
31 22 0:28 /.. /sys/fs/cgroup ro,relatime shared:9 master:1 - cgroup2 cgroup rw,nsdelegate
32 22 0:28 /a /mnt/with\040blank\134x rw - cgroup2 cgroup rw
nonsense
33 22 - x
`

func TestMounts(t *testing.T) {
	want := []mount{
		{"/", "/", "ext4", "rw"},
		{"/", "/proc", "proc", "rw,hidepid=invisible"},
		{"/..", "/sys/fs/cgroup", "cgroup2", "rw,nsdelegate"},
		{"/a", `/mnt/with blank\x`, "cgroup2", "rw"},
	}
	got := parseMounts(mountinfo)
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if !hides(got, "/proc") || hides(got, "/") {
		t.Error("hidepid")
	}
	if got = append(got, mount{"/", "/proc", "proc", "rw,hidepid=noaccess"}); hides(got, "/proc") {
		t.Error("the mount on top counts")
	}
	for _, escaped := range []string{`\`, `\04`, `\999`, `a\`} {
		if got := unescape(escaped); got != escaped {
			t.Errorf("%q: %q", escaped, got)
		}
	}
}

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
		got, ok := mount{root: c.root, point: "/cg"}.locate(c.path)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%+v: %q, %v", c, got, ok)
		}
	}
}

func TestStat(t *testing.T) {
	const rest = " S 7 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 99\n"
	for text, want := range map[string]stat{
		"12 (sh)" + rest:          {'S', 7, 3},
		"12 (a) Z 1 (b c)" + rest: {'S', 7, 3},
	} {
		if got, err := parseStat([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "12", "12 (sh)", "12 (sh) S 7", "12 (sh) S x 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3"} {
		if got, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestSocketInode(t *testing.T) {
	if n, ok := socketInode([]byte("socket:[4294967295]")); n != 1<<32-1 || !ok {
		t.Error(n, ok)
	}
	for _, target := range []string{"", "pipe:[5]", "socket:[5", "socket:5]", "socket:[]", "socket:[4294967296]", "/tmp/socket:[5]"} {
		if n, ok := socketInode([]byte(target)); ok {
			t.Errorf("%q: %d", target, n)
		}
	}
}

func FuzzParsers(f *testing.F) {
	f.Add(mountinfo)
	f.Add("12 (sh) S 7 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 99\n")
	f.Add("socket:[12]")
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range parseMounts(text) {
			if dir, ok := m.locate(text); ok && dir == "" {
				t.Errorf("%q", m)
			}
		}
		parseStat([]byte(text))
		socketInode([]byte(text))
		groupPath(text)
		if len(unescape(text)) > len(text) {
			t.Error("longer")
		}
	})
}
