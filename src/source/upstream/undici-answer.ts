import type { Dispatcher } from 'undici'
import type { LineAnswer } from './line-answer.js'

/** What undici calls while it reads an answer, so that `answer` hears of it as of one by the client of our own. */
export function handlerOf(answer: LineAnswer): Dispatcher.DispatchHandler {
  return {
    onRequestStart: (controller) =>
      answer.begin({
        pause: () => controller.pause(),
        resume: () => controller.resume(),
        drop: () => controller.abort(new Error('nobody waits for it')),
      }),
    // Words like 103 come before the answer.
    onResponseStart(_, status, headers) {
      if (status >= 200) answer.onHead(status, headers)
    },
    onResponseData: (_, piece) => answer.onPiece(piece),
    onResponseEnd: () => answer.onEnd(),
    onResponseError: (_, error) => answer.onError(error),
  }
}
