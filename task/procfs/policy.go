package procfs

import (
	"strings"

	"loam/abi/linux"
	"loam/mem"
)

// policies are the names of the policies for blocks in /sys/kernel/mm/transparent_hugepage/enabled, in Linux's order.
var policies = [...]struct {
	policy mem.Policy
	name   string
}{{mem.Everyone, "always"}, {mem.Advised, "madvise"}, {mem.Nobody, "never"}}

// PolicyText returns the content of /sys/kernel/mm/transparent_hugepage/enabled: all policies, the present one in brackets.
func PolicyText(now mem.Policy) string {
	var names []string
	for _, p := range policies {
		name := p.name
		if p.policy == now {
			name = "[" + name + "]"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ") + "\n"
}

// SetPolicy sets the policy that was written to the file. Errors: EINVAL for an unknown name.
func SetPolicy(b *mem.Blocks, text string) error {
	for _, p := range policies {
		if p.name == strings.TrimSuffix(text, "\n") {
			b.SetPolicy(p.policy)
			return nil
		}
	}
	return linux.EINVAL
}
