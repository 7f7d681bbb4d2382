import type { Release } from '../../actor/fair-slots.js'

/**
 * Takes a place among the requests to one gateway, and returns what leaves it again. It is called once for each request: for the
 * first one, and for each that goes on with a body which broke.
 */
export type TakePlace = () => Release

/** The first request has a place already, which `leaveFirst` leaves; `takeNext` takes those of the others. */
export function placeHeldFirst(leaveFirst: Release, takeNext: TakePlace): TakePlace {
  let held: Release | undefined = leaveFirst
  return () => {
    const leave = held ?? takeNext()
    held = undefined
    return leave
  }
}
