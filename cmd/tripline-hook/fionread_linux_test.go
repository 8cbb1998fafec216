// SPDX-License-Identifier: Apache-2.0

package main_test

import "golang.org/x/sys/unix"

const fionread = unix.TIOCINQ
