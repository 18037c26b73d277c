// Command loam is in a module that has the name of Loam's.
package main

import _ "loam/unikernel/rt/process"

func main() {}
