import { type Refusal, refuse } from '../format/refusal.js'

/** A shared engine does not answer, or has decided otherwise. Nothing was acknowledged; the client may repeat its request. */
export class EngineAway extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.message)
    this.name = 'EngineAway'
  }
}

/** Another machine has changed the same thing: what this one would have changed does not count. */
export class Overtaken extends EngineAway {
  constructor() {
    super(refuse('busy', 'self', 'another machine has just changed this upload: try again'))
    this.name = 'Overtaken'
  }
}
