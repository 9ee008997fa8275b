//go:build ignore

// Seccomp makes a seccomp profile of containerd's default and pidfd_getfd(2), with which
// --close-idle duplicates the server's descriptors: docs/examples/kubernetes/seccomp/lameduck.json.
// It is not part of the module, which would require containerd: see .ci/run seccomp.
package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// architectures are those that the profile is for: containerd knows only this machine's.
var architectures = []specs.Arch{
	specs.ArchX86_64, specs.ArchX86, specs.ArchX32, specs.ArchAARCH64, specs.ArchARM,
}

// perArchitecture are the calls that containerd allows on some of the architectures alone.
var perArchitecture = []string{
	"arch_prctl", "modify_ldt", // amd64
	"arm_fadvise64_64", "arm_sync_file_range", "breakpoint", "cacheflush", "set_tls", "sync_file_range2", // arm64
}

// profile returns containerd's default for containers with its default capabilities, on all of
// the architectures, and pidfd_getfd.
func profile() *specs.LinuxSeccomp {
	// Of the default capabilities, only this one allows a call more.
	bounding := specs.LinuxCapabilities{Bounding: []string{"CAP_SYS_CHROOT"}}
	p := seccomp.DefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: &bounding}})
	p.Architectures = architectures
	allowed := slices.Concat(perArchitecture, []string{"pidfd_open", "pidfd_getfd"})
	var others []specs.LinuxSyscall
	for _, rule := range p.Syscalls {
		if rule.Action == specs.ActAllow && len(rule.Args) == 0 {
			allowed = append(allowed, rule.Names...)
		} else {
			others = append(others, rule)
		}
	}
	slices.Sort(allowed)
	always := specs.LinuxSyscall{Names: slices.Compact(allowed), Action: specs.ActAllow}
	p.Syscalls = append([]specs.LinuxSyscall{always}, others...)
	return p
}

func main() {
	text, _ := json.Marshal(profile()) // cannot fail: texts and numbers
	// A rule a line, and of the long rule six names a line.
	text = regexp.MustCompile(`,({"names"|"syscalls")`).ReplaceAll(text, []byte(",\n$1"))
	text = regexp.MustCompile(`("\w+",){6}`).ReplaceAll(text, []byte("$0\n"))
	fmt.Printf("%s\n", text)
}
