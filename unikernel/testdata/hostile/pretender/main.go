// Command loam pretends that its module is Loam's.
package main

import _ "loam/unikernel/rt/process"

func main() {}
