// How do pointer and wheel become movements? Drag and pinch move and zoom; a press that stays in place is a click.

/** What gestures ask the timeline to do; x is in CSS pixels from the canvas's left edge. */
export interface Moves {
  pan(pixels: number): void;
  scroll(pixels: number): void;
  zoom(x: number, factor: number): void;
  click(event: PointerEvent): void;
  hover(event: PointerEvent): void;
  /** A gesture begins: the timeline takes the keyboard. */
  begin(): void;
  say(text: string): void;
}

const CLICK_SLACK = 4;
const WHEEL_ZOOM = 0.0022;

interface Point {
  x: number;
  y: number;
}

export function listenToPointer(canvas: HTMLCanvasElement, moves: Moves): void {
  const touches = new Map<number, Point>();
  let travelled = 0;
  canvas.addEventListener("pointerdown", (event) => {
    moves.begin();
    canvas.setPointerCapture(event.pointerId);
    touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
    travelled = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = touches.get(event.pointerId);
    if (!last) {
      if (event.pointerType === "mouse") moves.hover(event);
      return;
    }
    const dx = event.clientX - last.x;
    const dy = event.clientY - last.y;
    travelled += Math.abs(dx) + Math.abs(dy);
    if (touches.size === 2) pinch(canvas, touches, event, moves);
    else if (travelled > CLICK_SLACK) {
      // A finger that moves up or down scrolls the page.
      if (event.pointerType === "mouse") moves.scroll(-dy);
      moves.pan(-dx);
    }
    touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  canvas.addEventListener("pointerup", (event) => {
    const alone = touches.size === 1;
    touches.delete(event.pointerId);
    if (alone && travelled <= CLICK_SLACK) moves.click(event);
  });
  canvas.addEventListener("pointercancel", (event) => touches.delete(event.pointerId));
}

function pinch(canvas: HTMLCanvasElement, touches: Map<number, Point>, event: PointerEvent, moves: Moves): void {
  const moving = touches.get(event.pointerId)!;
  const still = [...touches.entries()].find(([id]) => id !== event.pointerId)![1];
  const before = Math.abs(moving.x - still.x) || 1;
  const after = Math.abs(event.clientX - still.x) || 1;
  moves.zoom((event.clientX + still.x) / 2 - canvas.getBoundingClientRect().left, before / after);
}

/** The wheel scrolls the page until the timeline has the keyboard; then it zooms. Sideways it always pans. */
export function listenToWheel(stage: HTMLElement, canvas: HTMLCanvasElement, moves: Moves): void {
  const wheel = (event: WheelEvent) => {
    const mine = document.activeElement === stage || event.ctrlKey || event.metaKey;
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (!mine && !sideways) {
      moves.say("click the timeline first, or hold Ctrl, to zoom with the wheel");
      return;
    }
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (sideways) moves.pan((event.deltaX || event.deltaY) * unit);
    else {
      const x = event.clientX - canvas.getBoundingClientRect().left;
      moves.zoom(x, Math.exp(Math.max(-1, Math.min(1, event.deltaY * unit * WHEEL_ZOOM))));
    }
  };
  stage.addEventListener("wheel", wheel, { passive: false });
}
