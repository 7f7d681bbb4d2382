import { connect, type Socket } from 'node:net'
import { pause, systemClock } from '../src/actor/clock.js'
import type { Candidate } from './candidates.js'
import type { BenchObject } from './objects.js'
import { residentMb } from './usage.js'

export interface SlowOutcome {
  readonly readers: number
  /** Readers that the server closed before the end. */
  readonly left: number
  readonly beforeMb: number
  readonly peakMb: number
  /** Longest time that a small request beside them took. */
  readonly probeMs: number
}

const bytesPerSecond = 1024

/** Opens a reader that takes `bytesPerSecond` and no more. */
function reader(port: number, path: string, onClose: () => void): Socket {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => socket.destroy())
  socket.on('close', onClose)
  socket.pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
  return socket
}

/** Many clients on slow lines at one object: what they cost the server, and whether others are still served. */
export async function slowReaders(
  target: Candidate,
  object: BenchObject,
  how: { readonly readers: number; readonly seconds: number },
): Promise<SlowOutcome> {
  const beforeMb = residentMb(target.pid).all
  let left = 0
  let over = false
  const leave = (): void => {
    if (!over) left += 1
  }
  const sockets = Array.from({ length: how.readers }, () => reader(target.port, `/${object.id}`, leave))
  let peakMb = beforeMb
  let probeMs = 0
  for (let second = 0; second < how.seconds; second += 1) {
    for (const socket of sockets) socket.read(bytesPerSecond)
    const started = systemClock.monotonic()
    const answer = await fetch(`http://127.0.0.1:${target.port}/${object.id}`, {
      headers: { range: 'bytes=0-99' },
    })
    await answer.arrayBuffer()
    probeMs = Math.max(probeMs, systemClock.monotonic() - started)
    peakMb = Math.max(peakMb, residentMb(target.pid).all)
    await pause(1000)
  }
  over = true
  for (const socket of sockets) socket.destroy()
  return { readers: how.readers, left, beforeMb, peakMb, probeMs }
}
