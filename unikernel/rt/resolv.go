package rt

import (
	"net/netip"
	"strings"
	"sync"

	"loam/fs"
	"loam/stack"
)

// resolvConf maintains /etc/resolv.conf. The file follows the servers learned from DHCP and routers until
// the program writes to it.
type resolvConf struct {
	mu      sync.Mutex // guards the fields below
	tree    *fs.Tree
	network *stack.Stack // the stack; nil until begin is called
	text    string       // the content that Loam last wrote
}

// begin writes the file and enables update.
func (r *resolvConf) begin(tree *fs.Tree, network *stack.Stack) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tree, r.network = tree, network
	r.text = resolvText(network.DNS())
	return writeEtc(tree, map[string]string{"resolv.conf": r.text})
}

// update rewrites the file if the list of servers has changed. The stack calls it through
// Config.DNSChanged.
func (r *resolvConf) update() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.network == nil {
		return
	}
	text := resolvText(r.network.DNS())
	if text == r.text || !r.untouched() {
		return
	}
	if writeEtc(r.tree, map[string]string{"resolv.conf": text}) == nil {
		r.text = text
	}
}

// untouched reports whether the file still has the content that Loam last wrote.
func (r *resolvConf) untouched() bool {
	v := fs.NewView(r.tree)
	f, err := v.Open(v.Root, "/etc/resolv.conf", fs.ReadOnly, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, len(r.text)+1)
	n, err := f.ReadAt(b, 0)
	return err == nil && string(b[:n]) == r.text
}

// resolvText returns the content of /etc/resolv.conf. Without servers the file is empty. Package net then
// asks the loopback address, where no server runs.
func resolvText(servers []netip.Addr) string {
	var b strings.Builder
	for _, a := range servers {
		b.WriteString("nameserver " + a.String() + "\n")
	}
	return b.String()
}
