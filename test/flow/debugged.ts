import type { Test } from 'tap'
import { WebSocket } from 'undici'
import { scratch } from '../scratch.js'
import { type Running, run } from './running.js'

/** A program that a debugger may come to, and its address. */
export async function debugged(
  t: Test,
  environment: Readonly<Record<string, string>>,
): Promise<{ readonly running: Running; readonly address: string }> {
  const running = await run(t, scratch('debugged'), { ...environment }, ['--inspect=127.0.0.1:0'])
  const address = /ws:\/\/\S+/.exec(running.noise.join(''))?.[0] ?? ''
  return { running, address }
}

/** Has the thread of this name evaluate an expression, as no request can; resolves when it has heard the order. */
export async function evaluateIn(address: string, name: string, expression: string): Promise<void> {
  const socket = new WebSocket(address)
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  const say = (id: number, method: string, params: object): void =>
    socket.send(JSON.stringify({ id, method, params }))
  let sentTo: string | undefined
  const reported = new Promise<void>((resolve) => {
    socket.addEventListener('message', ({ data }) => {
      const word = JSON.parse(String(data)) as {
        method?: string
        params?: { sessionId: string; workerInfo?: { title: string } }
      }
      // It has heard the order, and may have ended by it before its answer came.
      const isOver = word.method === 'NodeWorker.detachedFromWorker' && word.params?.sessionId === sentTo
      if (word.method === 'NodeWorker.receivedMessageFromWorker' || isOver) resolve()
      if (word.method !== 'NodeWorker.attachedToWorker' || sentTo !== undefined) return
      if (!word.params?.workerInfo?.title.endsWith(` ${name}`)) return
      // The thread that takes the place of this one is attached, too.
      const { sessionId } = word.params
      sentTo = sessionId
      const message = (id: number, method: string, params: object): string =>
        JSON.stringify({ id, method, params })
      say(2, 'NodeWorker.sendMessageToWorker', {
        sessionId,
        message: message(1, 'Runtime.evaluate', { expression }),
      })
    })
  })
  say(1, 'NodeWorker.enable', { waitForDebuggerOnStart: false })
  await reported
  socket.close()
}
