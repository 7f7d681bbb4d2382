import { textAnswer } from '../requests/upload-answers.js'

/** Answers to an item that is not accepted now, or has no receipt yet. Its sender may repeat the upload. */

export const indexBehind = textAnswer(
  503,
  'The index of this service takes no items now',
  '\r\nRetry-After: 5',
)

export const waitingAnswer = textAnswer(
  503,
  'The disk of this service takes no changes now. The item is kept: the same upload has its receipt when there is room',
  '\r\nRetry-After: 5',
)

export const endingAnswer = textAnswer(
  503,
  'The service is ending. The item is kept: the same upload has its receipt when the service is back',
  '\r\nRetry-After: 5',
)

export const notHeld = textAnswer(
  503,
  'Another machine of this service may have taken over this item: retry with the same payment',
  '\r\nRetry-After: 5',
)

export const unlisted = textAnswer(
  503,
  'The other machines of this service do not know of this bundle yet. No payment was moved: try again in some seconds',
  '\r\nRetry-After: 5',
)
