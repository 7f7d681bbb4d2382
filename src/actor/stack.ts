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
type Stack = readonly string[]

/** Numbers of the messages that let a thread go on, and that withdraw each pause that it did not come to. */
const [resumeId, disableId] = [3, 4] as const

/** Looks that are not over, by thread: two at once would leave it paused. */
const looks = new Map<number, Promise<Stack | undefined>>()

/**
 * The current stack of a thread that the calling one has started, innermost call first. V8's debugger pauses the
 * thread for an instant, which also works in an endless loop. Undefined where it runs none of our code (it sleeps, or
 * is inside of an addon) for `patienceMs`.
 */
export async function stackOf(threadId: number, patienceMs: number): Promise<Stack | undefined> {
  const over = new AbortController()
  try {
    const look = looks.get(threadId) ?? lookAt(threadId)
    return await Promise.race([look, pause(patienceMs, over.signal).then(() => undefined)])
  } catch {
    return undefined // a Node without an inspector
  } finally {
    over.abort()
  }
}

/**
 * Pauses a thread for an instant, and resolves with its stack then. The session stays until the thread has gone on, however late
 * that is: without one nobody resumes a thread that comes to its pause later. Undefined where the thread is gone.
 */
function lookAt(threadId: number): Promise<Stack | undefined> {
  const session = new Session()
  session.connect()
  let hear: (stack: Stack | undefined) => void = () => undefined
  const look = new Promise<Stack | undefined>((resolve) => {
    hear = resolve
  })
  looks.set(threadId, look)
  const end = (): void => {
    session.disconnect()
    looks.delete(threadId)
    hear(undefined)
  }
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
        say(disableId, 'Debugger.disable')
      }
      if (word.id === disableId) end()
    })
    session.on('NodeWorker.detachedFromWorker', ({ params }) => {
      if (params.sessionId === sessionId) end()
    })
    say(1, 'Debugger.enable')
    say(2, 'Debugger.pause')
  })
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, () => {
    if (!isFound) end()
  })
  return look
}

function written({ functionName, url, location }: Frame): string {
  const name = functionName === '' ? '(anonymous)' : functionName
  return `${name} ${url}:${location.lineNumber + 1}:${location.columnNumber + 1}`
}
