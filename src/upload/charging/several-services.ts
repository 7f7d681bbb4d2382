import { textAnswer, type UploadAnswer } from '../requests/upload-answers.js'

/** An upload service of several with one payment service. */
export interface ServiceOfSeveral {
  readonly name: string
  /** The others learn what it has accepted, and answer with its receipt. */
  readonly isListing: boolean
}

const answers: Readonly<Record<'spent' | 'listed' | 'held', UploadAnswer>> = {
  spent: textAnswer(409, 'Another machine of this service has accepted this item. It was not charged again'),
  listed: textAnswer(
    503,
    'Another machine of this service has accepted this item, and lists it soon',
    '\r\nRetry-After: 2',
  ),
  held: textAnswer(503, 'Another machine of this service is about to accept this item', '\r\nRetry-After: 5'),
}

/** The answer to an item that another upload service has accepted (`spent`), or is about to (`held`). */
export function elsewhereAnswer(
  elsewhere: 'spent' | 'held',
  service: Pick<ServiceOfSeveral, 'isListing'> | undefined,
): UploadAnswer {
  return answers[elsewhere === 'spent' && service?.isListing === true ? 'listed' : elsewhere]
}
