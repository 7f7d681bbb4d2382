import { Session } from 'node:inspector'
import { pause } from './clock.js'

interface Frame {
  readonly functionName: string
  readonly url: string
  readonly location: { readonly lineNumber: number; readonly columnNumber: number }
}

interface Word {
  readonly method?: string
  readonly params?: { readonly callFrames?: readonly Frame[] }
}

const framesMax = 20

/**
 * The current stack of a thread that the calling one has started, innermost call first. V8's debugger pauses the
 * thread for an instant, which also works in an endless loop. Undefined where it runs none of our code (it sleeps, or
 * is inside of an addon) for `patienceMs`.
 */
export async function stackOf(threadId: number, patienceMs: number): Promise<readonly string[] | undefined> {
  const session = new Session()
  const over = new AbortController()
  let found: readonly string[] | undefined
  try {
    session.connect()
    session.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }) => {
      // The id beside it counts sessions; the title is "[worker NUMBER] NAME".
      if (!workerInfo.title.startsWith(`[worker ${threadId}]`)) return
      const say = (id: number, method: string): void =>
        session.post('NodeWorker.sendMessageToWorker', { sessionId, message: JSON.stringify({ id, method }) })
      session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
        const word = JSON.parse(params.message) as Word
        if (params.sessionId !== sessionId || word.method !== 'Debugger.paused') return
        found = (word.params?.callFrames ?? []).slice(0, framesMax).map(written)
        say(3, 'Debugger.resume')
        over.abort()
      })
      say(1, 'Debugger.enable')
      say(2, 'Debugger.pause')
    })
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
    await pause(patienceMs, over.signal)
  } catch {
    return undefined // a Node without an inspector
  } finally {
    session.disconnect()
  }
  return found
}

function written({ functionName, url, location }: Frame): string {
  const name = functionName === '' ? '(anonymous)' : functionName
  return `${name} ${url}:${location.lineNumber + 1}:${location.columnNumber + 1}`
}
