package usernet_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"

	"loam/link/pipe"
	"loam/stack"
	"loam/usernet"
)

// A stack in this process is the guest. It gets its address from the gateway and fetches
// a page from a web server of the host.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hello, guest")
	}))
	defer server.Close()

	near, far := pipe.New(pipe.Config{})
	gateway, err := usernet.New(usernet.Config{Device: near, HostLoopback: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gateway.Close()

	guest := stack.New(stack.Config{})
	defer guest.Close()
	ifc, err := guest.Attach(far, stack.InterfaceConfig{Name: "eth0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	lease, err := ifc.DHCP(context.Background(), "guest")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the guest is", lease.Addr)

	port := netip.MustParseAddrPort(server.Listener.Addr().String()).Port()
	client := http.Client{Transport: &http.Transport{DialContext: guest.DialContext}}
	response, err := client.Get("http://" + net.JoinHostPort("host.loam.internal", fmt.Sprint(port)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	io.Copy(os.Stdout, response.Body)
	// Output:
	// the guest is 10.0.2.15/24
	// hello, guest
}
