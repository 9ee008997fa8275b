// Seccomp makes the files of docs/examples/kubernetes/seccomp: containerd's default profile and
// pidfd_getfd(2), with which --close-idle duplicates the server's descriptors.
//
//	go run -C docs/check/seccomp .
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"sigs.k8s.io/yaml"
)

const folder = "../../examples/kubernetes/seccomp/"

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

// object is a SeccompProfile of the Security Profiles Operator.
type object struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Metadata   map[string]string   `json:"metadata"`
	Spec       *specs.LinuxSeccomp `json:"spec"`
}

// files returns the contents by name.
func files() (map[string][]byte, error) {
	p := profile()
	file, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return nil, err
	}
	o, err := yaml.Marshal(object{"security-profiles-operator.x-k8s.io/v1", "SeccompProfile",
		map[string]string{"name": "lameduck"}, p})
	if err != nil {
		return nil, err
	}
	const made = "# Made by go run -C docs/check/seccomp .. Before version 1.0 of the operator: v1beta1.\n"
	return map[string][]byte{"lameduck.json": append(file, '\n'), "operator.yaml": append([]byte(made), o...)}, nil
}

func main() {
	all, err := files()
	for name, text := range all {
		if err == nil {
			err = os.WriteFile(folder+name, text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
