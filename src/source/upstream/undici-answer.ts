import type { Dispatcher } from 'undici'
import type { UpstreamAnswer } from './upstream-answer.js'

/** What undici calls while it reads an answer. undici itself refuses two lengths, and a length beside chunks. */
export function handlerOf(answer: UpstreamAnswer): Dispatcher.DispatchHandler {
  return {
    onRequestStart: (controller) =>
      answer.begin({
        pause: () => controller.pause(),
        resume: () => controller.resume(),
        drop: () => controller.abort(new Error('nobody waits for it')),
      }),
    onResponseStart(controller, status, headers) {
      // Informational answers (103) come before the answer.
      if (status < 200) return
      // undici would deliver the bytes of any other coding as if they were the body (RFC 9112, section 6.1).
      const coding = headers['transfer-encoding']
      if (coding !== undefined && String(coding).toLowerCase() !== 'chunked')
        controller.abort(new Error('the answer has a Transfer-Encoding other than chunked'))
      else answer.onHead(status, headers)
    },
    onResponseData: (_, piece) => answer.onPiece(piece),
    onResponseEnd: () => answer.onEnd(),
    onResponseError: (_, error) => answer.onError(error),
  }
}
