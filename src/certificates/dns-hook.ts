import { spawn } from 'node:child_process'
import { systemClock } from '../actor/clock.js'

/** A DNS provider takes up to minutes until its servers answer with a new record. */
const hookMs = 300_000
/** Characters of what the program wrote that are reported. */
const outputMax = 500

/**
 * Calls the operator's program for TXT records of dns-01 challenges (RFC 8555 section 8.4): `PROGRAM add|remove NAME VALUE`.
 * `add` must return only after the record can be queried, and must not replace other records of the same name: a host and its
 * wildcard have the same one. Calls are made one after another. Rejects with what the program wrote where it fails or takes
 * longer than 5 minutes; then it is ended, with all that it has started.
 */
export class DnsHook {
  #last: Promise<unknown> = Promise.resolve()

  /** Where `end` fires, a call that runs is ended, and no other one begins. */
  constructor(
    private readonly program: string,
    private readonly timeoutMs = hookMs,
    private readonly end?: AbortSignal,
  ) {}

  call(action: 'add' | 'remove', name: string, value: string): Promise<void> {
    const call = this.#last.then(() => this.#run([action, name, value]))
    this.#last = call.catch(() => 'the caller gets it')
    return call
  }

  #run(words: readonly string[]): Promise<void> {
    const { end, timeoutMs } = this
    const [action, name] = words
    let written = ''
    const fault = (how: string): Error => {
      const output = written.trim().slice(-outputMax)
      return new Error(`TLS_DNS_HOOK ${action} ${name}: ${how}${output === '' ? '' : `: ${output}`}`)
    }
    if (end?.aborted === true) return Promise.reject(fault('this program stops'))
    return new Promise((resolve, reject) => {
      // A group of its own, so that programs that it has started end with it.
      const child = spawn(this.program, words, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
      const outputs = [child.stdout, child.stderr]
      let ended: string | undefined
      const stop = (why: string): void => {
        ended = why
        killGroup(child.pid)
        for (const output of outputs) output.destroy()
      }
      const onEnd = (): void => stop('this program stops')
      const timer = systemClock.after(timeoutMs, () => stop(`did not end within ${timeoutMs / 1000} s`))
      const over = (how: string | undefined): void => {
        timer.cancel()
        end?.removeEventListener('abort', onEnd)
        if (how === undefined) resolve()
        else reject(fault(how))
      }
      end?.addEventListener('abort', onEnd)
      for (const output of outputs)
        output.on('data', (piece: Buffer) => {
          written = (written + piece.toString()).slice(-2 * outputMax)
        })
      child.once('error', (error) => over(error.message))
      child.once('close', (code, signal) => {
        if (code === 0 && ended === undefined) over(undefined)
        else over(ended ?? (code === null ? `was ended by ${signal}` : `ended with code ${code}`))
      })
    })
  }
}

function killGroup(leader: number | undefined): void {
  if (leader === undefined) return
  try {
    process.kill(-leader, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
