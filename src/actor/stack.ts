import { Session } from 'node:inspector'
import { pause } from './clock.js'

interface Frame {
  readonly functionName: string
  readonly url: string
  readonly location: { readonly lineNumber: number; readonly columnNumber: number }
}

interface Word {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly callFrames?: readonly Frame[] }
}

const framesMax = 20
/** Number of the message that lets a thread go on. */
const resumeId = 3

/**
 * The current stack of a thread that the calling one has started, innermost call first. V8's debugger pauses the
 * thread for an instant, which also works in an endless loop. Undefined where it runs none of our code (it sleeps, or
 * is inside of an addon) for `patienceMs`.
 */
export async function stackOf(threadId: number, patienceMs: number): Promise<readonly string[] | undefined> {
  const over = new AbortController()
  let found: readonly string[] | undefined
  const hear = (stack: readonly string[]): void => {
    found = stack
    over.abort()
  }
  try {
    lookAt(threadId, hear)
  } catch {
    return undefined // a Node without an inspector
  }
  await pause(patienceMs, over.signal)
  return found
}

/**
 * Pauses a thread for an instant, and gives its stack then. The session stays until the thread has gone on, however late that is:
 * without one nobody resumes a thread that comes to its pause later.
 */
function lookAt(threadId: number, hear: (stack: readonly string[]) => void): void {
  const session = new Session()
  session.connect()
  let isFound = false
  session.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }) => {
    // The id beside it counts sessions; the title is "[worker NUMBER] NAME".
    if (!workerInfo.title.startsWith(`[worker ${threadId}]`)) return
    isFound = true
    const say = (id: number, method: string): void =>
      session.post('NodeWorker.sendMessageToWorker', { sessionId, message: JSON.stringify({ id, method }) })
    session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
      if (params.sessionId !== sessionId) return
      const word = JSON.parse(params.message) as Word
      if (word.method === 'Debugger.paused') {
        hear((word.params?.callFrames ?? []).slice(0, framesMax).map(written))
        say(resumeId, 'Debugger.resume')
      }
      if (word.id === resumeId) session.disconnect()
    })
    session.on('NodeWorker.detachedFromWorker', ({ params }) => {
      if (params.sessionId === sessionId) session.disconnect()
    })
    say(1, 'Debugger.enable')
    say(2, 'Debugger.pause')
  })
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, () => {
    if (!isFound) session.disconnect()
  })
}

function written({ functionName, url, location }: Frame): string {
  const name = functionName === '' ? '(anonymous)' : functionName
  return `${name} ${url}:${location.lineNumber + 1}:${location.columnNumber + 1}`
}
