//go:build !linux

package child

import "syscall"

// dieWithUs does nothing where the kernel offers no such signal: children are stopped by Stop alone.
func dieWithUs(*syscall.SysProcAttr, syscall.Signal) {}
