import { once } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import type { Test } from 'tap'

/** What came back on a connection so far; `end`: 'open', 'ended' in good order, or the code of its error. */
export interface Heard {
  readonly text: string
  readonly end: string
}

/** Connects, sends and listens as it is told. A connection whose other side has ended stays open until it is told to end. */
const script = `
const { parentPort, workerData } = require('node:worker_threads')
const { connect } = require('node:net')
const { port, flag, orderPort } = workerData
const sockets = new Map()
const done = () => { Atomics.add(flag, 0, 1); Atomics.notify(flag, 0) }
orderPort.on('message', ({ name, sent, ends }) => {
  let socket = sockets.get(name)
  const act = () => {
    if (sent === '') return done()
    if (ends) socket.end(Buffer.from(sent, 'latin1'), done)
    else socket.write(Buffer.from(sent, 'latin1'), done)
  }
  if (socket !== undefined) return act()
  socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, act)
  sockets.set(name, socket)
  const tell = (text, end) => parentPort.postMessage({ name, text, end })
  socket.on('data', (piece) => tell(piece.toString('latin1'), 'open'))
  socket.on('end', () => tell('', 'ended'))
  socket.on('error', (error) => tell('', error.code))
})
parentPort.postMessage('ready')`

/** Clients in a thread of their own: they act while this one does not run, as on a busy machine. */
export class Outside {
  readonly #heard = new Map<string, Heard>()
  readonly #flag: Int32Array
  readonly #orders = new MessageChannel()
  readonly #worker: Worker

  private constructor(port: number) {
    this.#flag = new Int32Array(new SharedArrayBuffer(4))
    const orderPort = this.#orders.port2
    const workerData = { port, flag: this.#flag, orderPort }
    this.#worker = new Worker(script, { eval: true, workerData, transferList: [orderPort] })
    this.#worker.on('message', (message: { name: string; text: string; end: string }) => {
      const { text = '', end = 'open' } = this.#heard.get(message.name) ?? {}
      const isOver = end !== 'open' && end !== 'ended'
      this.#heard.set(message.name, { text: text + message.text, end: isOver ? end : message.end })
    })
  }

  static async clients(t: Test, port: number): Promise<Outside> {
    const outside = new Outside(port)
    t.teardown(() => outside.#worker.terminate())
    await once(outside.#worker, 'message')
    outside.#heard.clear()
    return outside
  }

  heard(name: string): Heard {
    return this.#heard.get(name) ?? { text: '', end: 'open' }
  }

  /**
   * Sends on the connection of this name, which is opened where there is none; '' opens it only. Returns when the kernel has all,
   * without a turn of this thread's loop. `ends`: and says that no more will come.
   */
  send(name: string, sent: string, ends = false): void {
    const before = Atomics.load(this.#flag, 0)
    this.#orders.port1.postMessage({ name, sent, ends })
    if (Atomics.wait(this.#flag, 0, before, 20_000) === 'timed-out') throw new Error('nothing was sent')
  }
}
