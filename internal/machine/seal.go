package machine

// Probes of what confines a program that runs as a process: docs/seal.md.

// seal returns a finding for each layer. Without the system call filter, no program starts as a process. The other
// layers are used as far as the kernel allows them.
func seal(h *Host) []Finding {
	var all []Finding
	for _, l := range h.Layers() {
		f := Finding{Area: "seal", Name: l.Name, State: OK, Detail: l.Detail}
		if !l.Holds {
			f.State = Missing
			f.Remedy = "see docs/seal.md: " + remedies[l.Name]
		}
		all = append(all, f)
	}
	return all
}

// remedies maps each layer to what to do if it is missing.
var remedies = map[string]string{
	"filter":     "use Linux 5.5 or later, or --platform vm",
	"user":       "do not use --keep-root",
	"namespaces": "let users make namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)",
	"files":      "let users make namespaces, or use Linux 5.13 with Landlock",
	"landlock":   "use Linux 5.13 or later with Landlock among its security modules (lsm=landlock,...)",
}
